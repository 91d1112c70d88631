"""Faults of servers over HTTP, each by name; `honest_http.py` is the twin of all. Standard library only.

`faulty_http.py [--port N] MODE`: `open` answers whoever asks, whatever Host and Origin say, lets foreign pages read
it, and takes session ids that it never gave out; `deaf` accepts connections and says nothing; `flood` answers with
events without end.
"""

import sys

import honest_http


class Open(honest_http.Handler):
    def local(self):
        return True

    def known(self):
        session = self.headers.get("mcp-session-id")
        if session is not None:
            self.sessions[session] = True
        return super().known()

    def more_headers(self):
        return {"Access-Control-Allow-Origin": "*"}


class Deaf(honest_http.Handler):
    def do_POST(self):
        self.rfile.read()  # to an end that never comes


class Flood(honest_http.Handler):
    def do_POST(self):
        self.begin_stream()
        try:
            while True:
                self.wfile.write(b'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n' * 1000)
        except OSError:
            self.close_connection = True


MODES = {"open": Open, "deaf": Deaf, "flood": Flood}

if __name__ == "__main__":
    honest_http.main(MODES[sys.argv[-1]])
