"""Serves a directory by FTP or SMB, or gets and puts a file there.

    services.py serve-ftp ADDRESS DIRECTORY
    services.py serve-smb ADDRESS DIRECTORY
    services.py ftp ADDRESS NAME
    services.py smb ADDRESS NAME

What is got is put back under another name, `NAME-put`; by FTP in each of its modes. Prints what of it was right.
"""

import hashlib
import io
import json
import sys

FTP_PORT, SMB_PORT = 2121, 445
TIMEOUT_S = 10


def serve_ftp(address, directory):
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    FTPHandler.authorizer = DummyAuthorizer()
    FTPHandler.authorizer.add_anonymous(directory, perm="elrw")
    FTPServer((address, FTP_PORT), FTPHandler).serve_forever()


def serve_smb(address, directory):
    from impacket.smbserver import SimpleSMBServer

    server = SimpleSMBServer(listenAddress=address, listenPort=SMB_PORT)
    server.addShare("FILES", directory)
    server.setSMB2Support(True)
    server.start()


def ftp(address, name):
    from ftplib import FTP

    said = {}
    # Active: the server connects to the client. Passive: the client connects once more.
    for mode, passive in (("active", False), ("passive", True)):
        with FTP(timeout=TIMEOUT_S) as session:
            session.connect(address, FTP_PORT)
            session.login()
            session.set_pasv(passive)
            target = io.BytesIO()
            session.retrbinary(f"RETR {name}", target.write, 1 << 16)
            got = target.getvalue()
            session.storbinary(f"STOR {name}-put", io.BytesIO(got))
            said[f"{mode}, bytes"] = len(got)
            said[f"{mode}, sha256"] = hashlib.sha256(got).hexdigest()[:16]
            said[f"{mode}, names"] = sorted(session.nlst())
    return said


def smb(address, name):
    from impacket.smbconnection import SMBConnection

    connection = SMBConnection(address, address, sess_port=SMB_PORT, timeout=TIMEOUT_S)
    connection.login("", "")
    target = io.BytesIO()
    connection.getFile("FILES", name, target.write)
    got = target.getvalue()
    connection.putFile("FILES", f"{name}-put", io.BytesIO(got).read)
    connection.logoff()
    return {"bytes": len(got), "sha256": hashlib.sha256(got).hexdigest()[:16]}


def main(words):
    match words:
        case ["serve-ftp", address, directory]:
            serve_ftp(address, directory)
        case ["serve-smb", address, directory]:
            serve_smb(address, directory)
        case ["ftp", address, name]:
            print(json.dumps(ftp(address, name)))
        case ["smb", address, name]:
            print(json.dumps(smb(address, name)))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
