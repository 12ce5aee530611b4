\echo Use "CREATE EXTENSION tamis_fdw" to load this file. \quit

CREATE FUNCTION tamis_fdw_handler() RETURNS fdw_handler AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION tamis_fdw_validator(text[], oid) RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER tamis_fdw HANDLER tamis_fdw_handler VALIDATOR tamis_fdw_validator;
