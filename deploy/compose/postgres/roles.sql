-- The roles and the database of docs/installation.md. The image runs this file once, when it creates its data folder.
\set ON_ERROR_STOP on
\set owner_password `cat /run/secrets/owner-password`
\set login_password `cat /run/secrets/login-password`
create role turnstone_owner login createrole nobypassrls password :'owner_password';
create role turnstone login noinherit nobypassrls password :'login_password';
create database turnstone owner turnstone_owner;
