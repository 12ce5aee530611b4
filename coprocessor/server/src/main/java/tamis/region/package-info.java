/** An opened region of an indexed table: its schema, the keys of its entries, its state, and how it is read. */
package tamis.region;
