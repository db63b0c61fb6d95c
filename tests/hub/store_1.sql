-- A store of version 1: a lane, a message, a parked row, a dead letter that was
-- copied to a file, and a range row that was not.
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE lanes (
 number INTEGER PRIMARY KEY,
 name TEXT NOT NULL UNIQUE,
 url TEXT NOT NULL,
 is_forgotten INTEGER NOT NULL DEFAULT 0);

CREATE TABLE messages (
 position INTEGER PRIMARY KEY,
 key_hash INTEGER NOT NULL,
 created_at INTEGER NOT NULL,
 content_type TEXT,
 headers TEXT,
 key TEXT,
 body BLOB NOT NULL);

CREATE TABLE idempotency_keys (
 position INTEGER PRIMARY KEY,
 key BLOB NOT NULL,
 body BLOB NOT NULL,
 at INTEGER NOT NULL);

CREATE TABLE cursors (
 partition INTEGER NOT NULL,
 slice INTEGER NOT NULL,
 lanes TEXT NOT NULL,
 PRIMARY KEY (partition, slice));

CREATE TABLE parked (
 lane INTEGER NOT NULL,
 partition INTEGER NOT NULL,
 position INTEGER NOT NULL,
 replay INTEGER NOT NULL,
 due_at INTEGER NOT NULL,
 wait INTEGER NOT NULL,
 attempts INTEGER NOT NULL,
 own_waits INTEGER NOT NULL,
 last_wait INTEGER NOT NULL,
 limited BLOB,
 has_failure INTEGER NOT NULL,
 fault INTEGER NOT NULL,
 code_kind INTEGER NOT NULL,
 code INTEGER NOT NULL,
 is_permanent INTEGER NOT NULL,
 is_unsent INTEGER NOT NULL,
 delay INTEGER NOT NULL,
 why INTEGER NOT NULL,
 cause TEXT,
 first_attempt_at INTEGER NOT NULL,
 last_attempt_at INTEGER NOT NULL,
 detail TEXT,
 answer BLOB,
 key_hash INTEGER NOT NULL,
 content_type TEXT,
 headers TEXT,
 key TEXT,
 body BLOB NOT NULL,
 PRIMARY KEY (lane, partition, position, replay));
CREATE INDEX parked_due ON parked
 (lane, due_at, position, partition, replay, wait);

CREATE TABLE failed_broadcast_logs (
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 message_id TEXT NOT NULL,
 target TEXT NOT NULL,
 target_url TEXT NOT NULL,
 payload BLOB,
 headers TEXT,
 content_type TEXT,
 key TEXT,
 lane INTEGER NOT NULL,
 partition INTEGER NOT NULL,
 position INTEGER NOT NULL,
 replay INTEGER NOT NULL,
 last_position INTEGER,
 count INTEGER NOT NULL,
 state TEXT NOT NULL,
 why TEXT NOT NULL,
 category TEXT,
 cause TEXT,
 http_status INTEGER,
 detail TEXT,
 answer BLOB,
 attempts INTEGER NOT NULL,
 first_attempt_at TEXT,
 last_attempt_at TEXT,
 created_at TEXT NOT NULL);
CREATE UNIQUE INDEX failed_broadcast_logs_delivery
 ON failed_broadcast_logs (lane, partition, position, replay);
CREATE INDEX failed_broadcast_logs_ranges
 ON failed_broadcast_logs (partition, position)
 WHERE last_position IS NOT NULL AND state = 'dead';


INSERT INTO meta VALUES ('epoch', '00000000000000aa'), ('next_position', 9),
 ('message_bytes', 4096), ('letters_row', 1), ('incarnations', 3);
INSERT INTO lanes VALUES (0, 'a', 'http://a/?token=x&y', 0);
INSERT INTO messages VALUES (8, 0, 1, NULL, NULL, NULL, 'm');
INSERT INTO parked VALUES (0, 0, 4, 0, 50, 0, 2, 1, 7, NULL, 0,
 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, 'p');
INSERT INTO failed_broadcast_logs VALUES (1, '00000000000000aa-3', 'a',
 'http://a/?token=x', 'body', NULL, NULL, NULL, 0, 0, 3, 0,
 NULL, 1, 'dead', 'never', 'B', 'HTTP_500', 500, NULL, NULL, 1,
 NULL, NULL, '2026-03-01T12:00:00.000Z');
INSERT INTO failed_broadcast_logs VALUES (4, '00000000000000aa-5', 'a',
 'http://a/', NULL, NULL, NULL, NULL, 0, 0, 5, 0,
 7, 3, 'dead', 'shed', NULL, 'SHED', NULL, NULL, NULL, 0,
 NULL, NULL, '2026-03-01T12:00:01.000Z');
INSERT INTO cursors VALUES (0, 0,
 '{"0": {"base": 8, "routed": 7, "delivered": 2, "dead": 4}}');
PRAGMA application_id = 1937008498;
PRAGMA user_version = 1;
