/**
 * One region server: its open regions from opening to closing, the proof that it owns them, the memory of its filters,
 * and the answers to requests.
 */
package tamis.server;
