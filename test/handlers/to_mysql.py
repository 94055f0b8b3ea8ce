"""mysql-call and mysql-call-batch, against a MariaDB."""
import os
import re
import subprocess

import scenarios
from rig import (DONE, EVERY_BYTE, HANDLERS, LIMIT, NOT_SET_UP, PERMANENT, RETRY, TOP, Client, Cutter, checked,
                 free_port, judged, judged_apart, left_in_time, mute_port, resolver, run_one, same)


# What a procedure may end with, how that is judged, and the text that says so.
ENDINGS = (
    ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no such order'", PERMANENT, "no such order"),
    ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'order 1045 (22 parts)'", PERMANENT, "order 1045"),
    ("SIGNAL SQLSTATE '40001' SET MESSAGE_TEXT = 'order 7 (22 parts)'", RETRY, "order 7"),
    ("SELECT 'ERROR 1045 (28000)'; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'printed before'", PERMANENT, "printed"),
    ("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1203, MESSAGE_TEXT = 'crowded'", RETRY, "crowded"),
    ("SIGNAL SQLSTATE '40001' SET MESSAGE_TEXT = 'try again'", RETRY, "try again"),
    ("SIGNAL SQLSTATE '08004' SET MESSAGE_TEXT = 'busy'", RETRY, "busy"),
    ("INSERT INTO effect (run_id, body) VALUES (1, ''), (1, '')", PERMANENT, "Duplicate entry"),
    ("INSERT INTO effect (number, body) VALUES ('x', '')", PERMANENT, "Incorrect integer value"),
    ("SELECT * FROM no_such_table", PERMANENT, "no_such_table"),
    ("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'before \\0'", PERMANENT, "before"),
    ("SELECT 1; SELECT 2", DONE, ""),
    ("SET autocommit = 0; INSERT INTO effect (body) VALUES (''); COMMIT", DONE, ""),
    ("SET autocommit = 0; INSERT INTO effect (body) VALUES ('')", RETRY, "left its transaction open"),
    ("START TRANSACTION; INSERT INTO effect (body) VALUES (''); SELECT 1", RETRY, "left its transaction open"),
    ("SIGNAL SQLSTATE '25001' SET MYSQL_ERRNO = 1568, MESSAGE_TEXT = ') at line 2: '", RETRY, "at line 2"),
    ("CALL no_such_procedure()", RETRY, "no_such_procedure"),
    ("CALL mysql.AddGeometryColumn('', '', '', '', 1)", RETRY, "execute command denied"),
    ("SELECT * FROM mysql.user", RETRY, "SELECT command denied"),
)


# Each body does what it says; the others are kept.
WILD = """
DELIMITER //
CREATE PROCEDURE wild(run_id varchar(32), token bigint unsigned, tag varchar(128), task_key varchar(255),
                      body longblob)
CASE CONVERT(body USING utf8mb4)
WHEN 'sleep' THEN DO SLEEP(1000);
WHEN 'kill' THEN KILL CONNECTION_ID();
WHEN 'missing' THEN CALL missing();
WHEN 'final' THEN SIGNAL SQLSTATE '45000';
WHEN 'half' THEN START TRANSACTION; INSERT INTO seen VALUES (run_id); SIGNAL SQLSTATE '40001';
WHEN 'open' THEN START TRANSACTION; INSERT INTO seen VALUES (run_id);
WHEN 'whole' THEN START TRANSACTION; INSERT INTO effect (run_id, body) VALUES (run_id, body); COMMIT;
WHEN 'manual' THEN SET autocommit = 0; INSERT INTO effect (run_id, body) VALUES (run_id, body); COMMIT;
WHEN 'fresh' THEN
    IF @left = 1 OR @@sql_mode = '' THEN SIGNAL SQLSTATE '45000'; END IF;
    SET @left = 1, sql_mode = '';
WHEN 'begun' THEN IF @begun IS NULL THEN SIGNAL SQLSTATE '45000'; END IF;
ELSE INSERT INTO effect (run_id, body) VALUES (run_id, body);
END CASE //
"""
KEEP = """
CREATE TABLE seen (run_id varchar(32) PRIMARY KEY);
CREATE TABLE effect (number int AUTO_INCREMENT PRIMARY KEY, run_id varchar(32) UNIQUE, tag text, task_key text,
                     body longblob);
DELIMITER //
CREATE PROCEDURE keep(run_id varchar(32), token bigint unsigned, tag varchar(128), task_key varchar(255),
                      body longblob) SQL SECURITY INVOKER
BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT IGNORE INTO seen VALUES (run_id);
    IF ROW_COUNT() = 1 THEN
        INSERT INTO effect (run_id, tag, task_key, body) VALUES (run_id, tag, task_key, body);
    END IF;
    COMMIT;
END //
"""
SIGNATURE = "(a varchar(32), b bigint unsigned, c varchar(128), d varchar(255), e longblob) SQL SECURITY INVOKER"


def sample():
    """The table and the procedure that dq-handlers(5) shows."""
    command = ["mandoc", "-T", "ascii", TOP + "/doc/dq-handlers.5"]
    page = subprocess.run(command, check=True, capture_output=True, text=True)
    return re.search(r"^ *CREATE TABLE task_seen.*?^ *END //$", page.stdout, re.S | re.M).group()


class Database:
    """The application's database `shop`; its procedure `keep` keeps what it gets, each task once."""

    def __init__(self, directory):
        self.directory, self.port = directory, free_port()
        self.environment = {**os.environ, "DQ_SANDBOX": directory}
        self.cutter = Cutter(self.port, b"CALL ")
        self.start()
        self.client = Client(os.path.realpath(directory + "/server") + "/mysql.sock")
        self.sql("CREATE DATABASE shop; CREATE USER shop IDENTIFIED BY 'secret'; GRANT ALL ON shop.* TO shop", "mysql")
        self.sql(KEEP + "DELIMITER ;" + WILD)
        self.file, self.cut_file = self.option_file("direct", self.port), self.option_file("cut", self.cutter.port)

    def start(self):
        self._sandbox("start", "--no-schema", "--options",
                      f"--skip-networking=0 --bind-address=127.0.0.1 --port={self.port}")

    def stop(self):
        self.client.end()
        self._sandbox("stop")

    def destroy(self):
        self.client.end()
        self._sandbox("destroy", "--force")

    def _sandbox(self, *words):
        checked([TOP + "/bin/dq-sandbox", *words], env=self.environment)

    def option_file(self, name, port, password="secret", database="shop", host="127.0.0.1"):
        path = f"{self.directory}/{name}.cnf"
        with open(path, "w") as file:
            file.write(f"[client]\nhost = {host}\nport = {port}\nuser = shop\npassword = {password}\n"
                       f"database = {database}\n")
        return path

    def sql(self, text, database="shop"):
        return self.client.query(database, text)

    def clear(self):
        self.sql("DELETE FROM seen; DELETE FROM effect")

    def received(self):
        return [(None, bytes.fromhex(body)) for body, in self.sql("SELECT HEX(body) FROM effect ORDER BY number")]



def both(what, procedure, file, expected, text="", body=b"x", **env):
    judged(what, ["mysql-call", "mysql-call-batch"], [procedure], expected, {"MYSQL_FILE": file, **env}, body, text)


def errors_are_mapped(database):
    for ending, expected, text in ENDINGS:
        database.sql(f"DELIMITER //\nCREATE OR REPLACE PROCEDURE ending{SIGNATURE} BEGIN {ending}; END //")
        both(ending, "ending", database.file, expected, text)
    both("no such procedure", "no_such", database.file, NOT_SET_UP)
    both("no such procedure of a database", "`Shop`.`No_such`", database.file, NOT_SET_UP)
    database.sql(f"CREATE OR REPLACE PROCEDURE ending{SIGNATURE} CALL mysql.ending()")
    both("no procedure of that name elsewhere", "shop.ending", database.file, RETRY, "ending")
    both("no right to call it", "mysql.AddGeometryColumn", database.file, NOT_SET_UP)
    both("a procedure of no database", "no_such.keep", database.file, NOT_SET_UP)
    both("an unreadable file", "keep", "/nonexistent", NOT_SET_UP)
    both("a wrong password", "keep", database.option_file("wrong", database.port, "wrong"), NOT_SET_UP)
    both("no such database", "keep", database.option_file("none", database.port, "secret", "none"), NOT_SET_UP)
    both("nobody listens", "keep", database.option_file("down", free_port()), RETRY)
    database.sql("SET GLOBAL read_only = 1")
    both("a read-only server", "keep", database.file, RETRY, "read-only")
    database.sql("SET GLOBAL read_only = 0")


def call_costs_its_task_only(database):
    good = (b"x", "done", "")
    for body, result, text in ((b"sleep", "retry", "timed out"), (b"kill", "retry", ""), (b"final", "fail", "45000"),
                               (b"missing", "retry", "PROCEDURE shop.missing does not exist")):
        database.clear()
        judged_apart(body, "mysql-call-batch", ["wild"], {"MYSQL_FILE": database.file, "TASK_TIMEOUT": "3"}, [
            (body, result, text), good, (body, result, text), good, good])
        same(f"calls beside {body}", len(database.received()), 3)


def calls_leave_nothing_behind(database):
    """Neither half a transaction, nor what they have set; and what the server begins each session with is there."""
    database.clear()
    judged_apart("calls that leave something", "mysql-call-batch", ["wild"], {"MYSQL_FILE": database.file}, [
        (b"half", "retry", "40001"), (b"whole", "done", ""), (b"open", "retry", "left its transaction open"),
        (b"whole", "done", ""), (b"manual", "done", ""), (b"x", "done", ""), (b"fresh", "done", ""),
        (b"fresh", "done", ""), (b"half", "retry", "40001")])
    same("effects", [body for _, body in database.received()], [b"whole", b"whole", b"manual", b"x"])
    same("halves", database.sql("SELECT * FROM seen"), [])
    database.sql("SET GLOBAL init_connect = 'SET @begun = 1'")
    try:
        judged_apart("a server that begins sessions", "mysql-call-batch", ["wild"], {"MYSQL_FILE": database.file}, [
            (b"begun", "done", ""), (b"begun", "done", "")])
    finally:
        database.sql("SET GLOBAL init_connect = ''")


def bodies_that_are_too_long_fail(database):
    """A call has two digits for each byte of the body."""
    most = 1 << 18
    database.sql(f"SET GLOBAL max_allowed_packet = {most}")
    good, long, longer = b"x" * (most // 2 - 300), b"x" * (most // 2 - 10), EVERY_BYTE * 8192
    text = "max_allowed_packet"
    try:
        database.clear()
        judged_apart("long bodies", "mysql-call-batch", ["keep"], {"MYSQL_FILE": database.file}, [
            (good, "done", ""), (long, "fail", text), (longer, "fail", text), (good, "done", "")])
        for body in (long, longer):
            both(f"{len(body)} bytes", "keep", database.file, PERMANENT, text, body=body)
    finally:
        database.sql("SET GLOBAL max_allowed_packet = 64 << 20")


def half_a_text_is_not_sent(database, directory):
    """One of the programs that turn it into digits ends after so many characters."""
    for name, length in (("od", 64), ("od", 0), ("tr", 64), ("tr", 0)):
        place = f"{directory}/{name}-{length}"
        os.mkdir(place)
        with open(os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
            file.write(f'#!/bin/sh\nPATH=$REST\n{name} "$@" | head -c {length}\nkill -KILL $$\n')
        env = {"MYSQL_FILE": database.file, "REST": os.environ["PATH"], "PATH": f"{place}:{os.environ['PATH']}"}
        database.clear()
        status, output = run_one("mysql-call", ["keep"], b"an order that is longer than half of it", env)
        same(f"{name}, {length}: {output}", (status in (RETRY, 2), database.received()), (True, []))
    env = {"PATH": os.environ["PATH"], "MYSQL_FILE": database.file, "DQ_TAG": "t", "DQ_RUN_ID": "7", "DQ_TOKEN": "1"}
    subprocess.run(["sh", "-c", f"printf 'of a pipe' | {HANDLERS}mysql-call keep"], env=env, check=True, timeout=LIMIT)
    same("a body of a pipe", database.received(), [(None, b"of a pipe")])


def server_that_goes_away(database):
    """At first, none of the tasks can be the reason; later, the one before may be."""
    env = {"MYSQL_FILE": database.option_file("down", free_port())}
    judged_apart("nobody listens", "mysql-call-batch", ["keep"], env, [(b"x", "retry", "Can't connect")] * 3)
    with mute_port() as port:
        env = {"MYSQL_FILE": database.option_file("mute", port), "TASK_TIMEOUT": "1"}
        judged_apart("a mute server", "mysql-call-batch", ["keep"], env, [(b"x", "retry", "")] * 3)
    database.clear()
    database.sql("ALTER USER shop WITH MAX_CONNECTIONS_PER_HOUR 1")
    try:
        judged_apart("a server that ends", "mysql-call-batch", ["wild"], {"MYSQL_FILE": database.file}, [
            (b"x", "done", ""), (b"kill", "retry", ""), (b"x", None, ""), (b"x", None, "")])
    finally:
        database.sql("ALTER USER shop WITH MAX_CONNECTIONS_PER_HOUR 0; FLUSH PRIVILEGES")


def hanging_server_is_left_in_time(database):
    with mute_port() as port:
        both("a mute server", "keep", database.option_file("mute", port), RETRY, TIMEOUT="1")


def hanging_resolver_is_left_in_time(database, directory):
    file = database.option_file("unresolved", 3306, host="db.invalid")
    left_in_time("mysql-call", lambda: both(
        "a resolver that hangs", "keep", file, RETRY, TIMEOUT="1", **resolver(directory)))


def names_are_data(database, queue):
    """A tag, a key and a body that would be SQL if they were not sent as digits."""
    evil = "x');DROP/**/TABLE/**/effect;--"
    for script, batch in (("mysql-call", 1), ("mysql-call-batch", 2)):
        database.clear()
        queue.add("größe", evil.encode(), evil)
        queue.start("größe", script, ["keep"], batch, MYSQL_FILE=database.file)
        try:
            queue.wait_done("größe")
        finally:
            queue.stop()
        same(script, database.sql("SELECT tag, task_key, body FROM effect"), [["größe", evil, evil]])


def sample_of_the_manual_works(database):
    database.sql("CREATE TABLE shop_order (id int PRIMARY KEY, state varchar(16));"
                 "INSERT INTO shop_order VALUES (1001, 'new');" + sample())
    for _ in range(2):
        same("order_due", run_one("mysql-call", ["shop.order_due"], b"1001", {"MYSQL_FILE": database.file})[0], DONE)
        same("orders", database.sql("SELECT * FROM shop_order"), [["1001", "cancelled"]])
    database.sql("UPDATE shop_order SET state = 'new'")
    same("order_due", run_one("mysql-call", ["shop.order_due"], b"1001", {"MYSQL_FILE": database.file})[0], DONE)
    same("an order after a repeat", database.sql("SELECT * FROM shop_order"), [["1001", "new"]])


def cases(directory, queue):
    database = Database(directory + "/mysql")
    try:
        yield "each error is retried, final, or returns the task", lambda: errors_are_mapped(database)
        yield "batch: a call costs its task only", lambda: call_costs_its_task_only(database)
        yield "batch: a call leaves nothing to the next", lambda: calls_leave_nothing_behind(database)
        yield "a body that is too long for the server fails", lambda: bodies_that_are_too_long_fail(database)
        yield "half a text is not sent", lambda: half_a_text_is_not_sent(database, directory)
        yield "batch: a server that goes away", lambda: server_that_goes_away(database)
        yield "a server that hangs is left in time", lambda: hanging_server_is_left_in_time(database)
        yield "a resolver that hangs is left in time", lambda: hanging_resolver_is_left_in_time(database, directory)
        yield "tags, keys and bodies are data", lambda: names_are_data(database, queue)
        yield "the procedure of dq-handlers(5) works", lambda: sample_of_the_manual_works(database)
        for script, batch in (("mysql-call", 1), ("mysql-call-batch", 3)):
            handler = {"script": script, "arguments": ["keep"], "batch": batch, "MYSQL_FILE": database.file}
            cut = {"MYSQL_FILE": database.cut_file}
            yield from scenarios.of(queue, database, "mysql", handler, cut, repeats=False)
    finally:
        database.destroy()
