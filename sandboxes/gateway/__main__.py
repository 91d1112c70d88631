"""Started by the container: `python3 -I -S /opt/gateway`."""

from sinkhole.start import main

main()
