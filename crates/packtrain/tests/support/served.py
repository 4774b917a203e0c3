"""Serves a directory by HTTP, FTP or SMB, or gets a file from where that is done.

    served.py serve PROTOCOL ADDRESS DIRECTORY
    served.py get PROTOCOL ADDRESS NAME TARGET

For tests: nobody needs to say who they are. `get` waits for the server for 20 seconds at most.
"""

import functools
import sys
import time

HTTP_PORT, FTP_PORT, SMB_PORT = 8000, 2121, 445
WAIT_S = 20


def serve_http(address, directory):
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    handler = functools.partial(SimpleHTTPRequestHandler, directory=directory)
    ThreadingHTTPServer((address, HTTP_PORT), handler).serve_forever()


def get_http(address, name, target):
    import shutil
    from urllib.request import urlopen

    with urlopen(f"http://{address}:{HTTP_PORT}/{name}", timeout=10) as source:
        shutil.copyfileobj(source, target, 1 << 16)


def serve_ftp(address, directory):
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    FTPHandler.authorizer = DummyAuthorizer()
    FTPHandler.authorizer.add_anonymous(directory)
    FTPServer((address, FTP_PORT), FTPHandler).serve_forever()


def get_ftp(address, name, target):
    from ftplib import FTP

    with FTP(timeout=10) as ftp:
        ftp.connect(address, FTP_PORT)
        ftp.login()
        ftp.retrbinary(f"RETR {name}", target.write, 1 << 16)


def serve_smb(address, directory):
    from impacket.smbserver import SimpleSMBServer

    server = SimpleSMBServer(listenAddress=address, listenPort=SMB_PORT)
    server.addShare("FILES", directory)
    server.setSMB2Support(True)
    server.start()


def get_smb(address, name, target):
    from impacket.smbconnection import SMBConnection

    connection = SMBConnection(address, address, sess_port=SMB_PORT, timeout=10)
    connection.login("", "")
    connection.getFile("FILES", name, target.write)
    connection.logoff()


def get(protocol, address, name, path):
    begun = time.monotonic()
    while True:
        with open(path, "wb") as target:
            try:
                return globals()[f"get_{protocol}"](address, name, target)
            except ConnectionRefusedError:
                refused = sys.exc_info()[1]
            except OSError as error:
                # impacket wraps it.
                if "refused" not in str(error).lower():
                    raise
                refused = error
        if time.monotonic() - begun > WAIT_S:
            raise refused
        time.sleep(0.1)


def main(words):
    match words:
        case ["serve", protocol, address, directory]:
            globals()[f"serve_{protocol}"](address, directory)
        case ["get", protocol, address, name, path]:
            get(protocol, address, name, path)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
