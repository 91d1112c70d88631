CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
INSERT INTO users VALUES (1, 'Alice', 'alice@example.com'), (2, 'Bob', 'bob@example.com');
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users(id), amount REAL, placed TEXT);
INSERT INTO orders VALUES (1, 1, 120.5, '2026-01-04'), (2, 2, 80.0, '2026-01-09'), (3, 1, 42.1, '2026-02-20');
