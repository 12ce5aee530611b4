/** Counting Bloom filters with the layout of tamis/filter in C++. */
package tamis.filter;
