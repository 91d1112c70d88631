"""The only home of Docker, scapy and psutil: images, containers, limits, leases."""
