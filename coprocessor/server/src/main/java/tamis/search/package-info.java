/** Searches in one region: what costs least to read, and the walks over entries and rows. */
package tamis.search;
