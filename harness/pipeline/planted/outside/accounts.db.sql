CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, reference TEXT);
INSERT INTO accounts VALUES (1, 'third party', '@SECRET@');
