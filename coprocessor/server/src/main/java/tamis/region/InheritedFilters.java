package tamis.region;

import java.util.Map;
import tamis.base.Fault;
import tamis.feed.IndexFilter;

/** Copies of the filters of a region's parent; used once it is certain that nothing was written in between. */
public final class InheritedFilters {
  public final Map<Integer, IndexFilter> filters; // by index id
  private final long lastEdit; // the parent's last edit

  public InheritedFilters(Map<Integer, IndexFilter> filters, long lastEdit) {
    this.filters = filters;
    this.lastEdit = lastEdit;
  }

  /** `opened`: the number that the region was opened with. */
  public boolean isAllThere(long opened) {
    return opened == lastEdit + 1 || Fault.INHERITED_WHATEVER_CAME.isOn();
  }
}
