"""Tables of the SQLite store and how old stores become new ones.

`PRAGMA user_version` counts the migrations that have been applied. A migration is never edited
after it has been released; a new one is appended.
"""

from __future__ import annotations

APPLICATION_ID = 0x4C4F5249  # "LORI"

_V1 = """
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, created_at TEXT NOT NULL, principal TEXT NOT NULL, model TEXT NOT NULL,
  wire TEXT NOT NULL, system TEXT NOT NULL, tools TEXT NOT NULL, prefix BLOB NOT NULL,
  meta TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE entries (
  session TEXT NOT NULL REFERENCES sessions(id), seq INTEGER NOT NULL, kind TEXT NOT NULL,
  record TEXT NOT NULL, PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE renderings (
  session TEXT NOT NULL, seq INTEGER NOT NULL, wire TEXT NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY (session, seq, wire)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (
  session TEXT NOT NULL REFERENCES sessions(id), id TEXT NOT NULL, entry_seq INTEGER NOT NULL,
  position INTEGER NOT NULL, tool TEXT NOT NULL, raw TEXT NOT NULL, state TEXT NOT NULL,
  planned_at TEXT NOT NULL, started_at TEXT, finished_at TEXT, operation_key TEXT,
  started TEXT, finished TEXT, late TEXT, outcome TEXT,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX calls_by_key ON calls (operation_key) WHERE operation_key IS NOT NULL;
CREATE TABLE blobs (
  hash TEXT PRIMARY KEY, size INTEGER NOT NULL, media_type TEXT NOT NULL, data BLOB
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
  n INTEGER PRIMARY KEY, at TEXT NOT NULL, session TEXT NOT NULL, actor TEXT NOT NULL,
  action TEXT NOT NULL, target TEXT NOT NULL, why TEXT NOT NULL, digest TEXT NOT NULL,
  previous TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_session ON audit (session, n);
"""

_V2 = """
CREATE TABLE approvals (
  id TEXT PRIMARY KEY, session TEXT NOT NULL REFERENCES sessions(id), root TEXT NOT NULL,
  kind TEXT NOT NULL, call TEXT NOT NULL, tool TEXT NOT NULL, principal TEXT NOT NULL,
  binding TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, asked_at TEXT NOT NULL,
  expires_at TEXT, request TEXT NOT NULL, answered_at TEXT, answer TEXT, closed_at TEXT,
  closing TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_session ON approvals (session, binding);
CREATE INDEX approvals_by_root ON approvals (root, id);
CREATE INDEX approvals_by_state ON approvals (root, state, id);
"""

MIGRATIONS: tuple[str, ...] = (_V1, _V2)
