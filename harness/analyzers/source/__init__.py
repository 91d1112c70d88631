"""Checks over source trees and packages (to come)."""
