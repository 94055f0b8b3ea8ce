"""The part of the MySQL protocol that the harness needs: a small client, and packets for the proxy."""
import socket
import struct

COM_QUIT, COM_QUERY = 1, 3
_CAPABILITIES = (
    0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
)  # LONG_PASSWORD CONNECT_WITH_DB 41 TRANSACTIONS SECURE PLUGIN_AUTH


def numbers(count):
    """A derived table with the numbers 1 to count in its column seq: only MariaDB has sequence tables, and limits of
    recursion differ."""
    digits = "(SELECT 0 AS d UNION " + " UNION ".join(f"SELECT {d}" for d in range(1, 10)) + ")"
    places = range(len(str(count - 1)))
    value = " + ".join(["1", *(f"d{at}.d * {10 ** at}" for at in places)])
    tables = ", ".join(f"{digits} d{at}" for at in places)
    return f"(SELECT {value} AS seq FROM {tables} WHERE {value} <= {count}) numbers"


class Error(Exception):
    """An error from the server (number > 0), or a broken connection (0)."""

    def __init__(self, number, text):
        super().__init__(f"{number}: {text}")
        self.number = number


def packet(sequence, payload):
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


def error_packet(sequence, number, text="injected"):
    if number == 1290:  # an option is the reason, and its text says which
        text = "The server is running with the --read-only option so it cannot execute this statement"
    return packet(sequence, b"\xff" + struct.pack("<H", number) + b"#HY000" + text.encode())


def _text(data):
    if data is None:
        return b"\xfb"
    size = len(data)
    head = (
        bytes([size])
        if size < 0xFB
        else b"\xfc" + struct.pack("<H", size)
        if size < 1 << 16
        else b"\xfd" + struct.pack("<I", size)[:3]
    )
    return head + data


def result_packets(columns, rows):
    """A result with this number of columns; cells are bytes or None."""
    eof = b"\xfe\0\0\2\0"
    column = (
        b"".join(_text(name) for name in (b"def", b"", b"", b"", b"c", b"c"))
        + b"\x0c"
        + struct.pack("<HIBHB2x", 45, 1024, 253, 0, 0)
    )
    payloads = [bytes([columns])] + [column] * columns + [eof] + [b"".join(map(_text, row)) for row in rows] + [eof]
    return b"".join(packet((1 + at) % 256, payload) for at, payload in enumerate(payloads))


def split_packets(data):
    """The complete packets at the start of data as (sequence, payload), and their length in bytes."""
    found, at = [], 0
    while len(data) - at >= 4:
        size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        if len(data) - at - 4 < size:
            break
        found.append((data[at + 3], bytes(data[at + 4 : at + 4 + size])))
        at += 4 + size
    return found, at


def _length(data, at):
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


class Client:
    """One connection; results are lists of tuples of str or None (bytes with raw=True), or the number of
    affected rows."""

    def __init__(self, path, user="root", database=None, timeout=300.0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.buffer = bytearray()
        try:
            self.sock.connect(path)
            self._log_in(user, database)
        except OSError as e:
            self.close()
            raise Error(0, str(e)) from e
        except Error:
            self.close()
            raise

    def _log_in(self, user, database):
        greeting = self._read()
        if greeting[0] == 0xFF:
            self._fail(greeting)
        end = greeting.index(b"\0", 1)
        self.thread_id = struct.unpack_from("<I", greeting, end + 1)[0]
        flags = _CAPABILITIES if database else _CAPABILITIES & ~0x8
        body = struct.pack("<IIB23x", flags, 1 << 24, 45) + user.encode() + b"\0" + b"\0"
        if database:
            body += database.encode() + b"\0"
        self.sock.sendall(packet(1, body + b"mysql_native_password\0"))
        answer = self._read()
        if answer[0] == 0xFE:  # another method: the password is empty with any of them
            self.sock.sendall(packet(3, b""))
            answer = self._read()
        if answer[0] == 0xFF:
            self._fail(answer)

    @staticmethod
    def _fail(payload):
        raise Error(struct.unpack_from("<H", payload, 1)[0], payload[9:].decode(errors="replace"))

    def _read(self):
        while True:
            if len(self.buffer) >= 4:
                size = self.buffer[0] | self.buffer[1] << 8 | self.buffer[2] << 16
                if len(self.buffer) >= 4 + size:
                    payload = bytes(self.buffer[4 : 4 + size])
                    del self.buffer[: 4 + size]
                    return payload
            try:
                data = self.sock.recv(1 << 16)
            except OSError as e:
                raise Error(0, str(e)) from e
            if not data:
                raise Error(0, "the connection broke")
            self.buffer += data

    def send(self, sql):
        try:
            self.sock.sendall(packet(0, bytes([COM_QUERY]) + (sql if isinstance(sql, bytes) else sql.encode())))
        except OSError as e:
            raise Error(0, str(e)) from e

    def query(self, sql, raw=False):
        self.send(sql)
        head = self._read()
        if head[0] == 0xFF:
            self._fail(head)
        if head[0] == 0x00:
            return _length(head, 1)[0]
        columns = _length(head, 0)[0]
        for _ in range(columns + 1):  # their descriptions and an EOF
            self._read()
        return self._rows(columns, raw)

    def _rows(self, columns, raw):
        rows = []
        while True:
            data = self._read()
            if data[0] == 0xFE and len(data) < 9:
                return rows
            if data[0] == 0xFF:
                self._fail(data)
            row, at = [], 0
            for _ in range(columns):
                size, at = _length(data, at)
                cell = None if size is None else data[at : at + size]
                at += size or 0
                row.append(cell if raw or cell is None else cell.decode(errors="replace"))
            rows.append(tuple(row))

    def close(self):
        self.sock.close()
