/** Index entries: kept with every write of a row, built for rows that have none, and checked against the rows. */
package tamis.index;
