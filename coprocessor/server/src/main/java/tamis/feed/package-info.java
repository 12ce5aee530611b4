/**
 * The filters of a server's regions and the feed that tells coordinators of them: the counterpart of the folder
 * tamis/feed in C++. Nothing here knows HBase.
 */
package tamis.feed;
