"""Pure: a ScanResult rendered for people and programs."""
