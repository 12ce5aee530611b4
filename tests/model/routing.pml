/* How a coordinator may leave regions out, and why it never misses an acknowledged row.

   A region server counts the values of its regions and tells coordinators when a bit of a filter
   changes. A coordinator that holds a live lease of that server leaves out ("excludes") a region whose
   bit is 0. This model holds the rules of that protocol against everything that can happen between
   servers and coordinators: messages that are lost, late or out of order, puts and deletes, rebuilds
   of a filter, a split, moves, crashes, restarts, servers that do not know that they have been
   expelled, which may happen to them at any time.

   Claim     No coordinator ever excludes a range while an acknowledged put in it stands, and no server
             answers a search when a put that it does not know has been acknowledged elsewhere.
   Modelled  One value, hence one bit. Two rows that may hold it, one in each half of the key range.
             One region, which may split once into its halves. NS servers, NC coordinators, SLOTS
             calls in flight from each coordinator to each server. The fence at the store is perfect:
             only the owner of a region commits to it.
   Unbounded time, puts, deletes, rebuilds, losses, puts that give up. (Clocks are what is left of
             them, a lease L ticks and a proof of ownership S; events are counted from the last one
             that all have applied.)
   Bounded   splits, moves, crashes, zombies; and nothing new begins while WINDOW events are not yet
             applied by all.
   Left out  Values that share bits, the layers of a scalable filter (a rebuild holds decrements of
             the new generation back because of them), merges, several indexes, ranges (to widen one
             is to set a bit). Also left out is the check that no other replica overlaps a region that
             is excluded: the claim holds without it.

   Each rule has a switch, -DNAME, that drops it. check.py shows that each is needed:

     INCREMENT_LATE    a put counts its value after the commit
     DECREMENT_EARLY   a delete takes its value off before the commit
     NO_LEASE_WAIT     a put does not wait for coordinators
     NONFLIP_FREE      a put that finds its bits set waits for no flip of others
     COUNT_FROM_REPLY  a coordinator counts its lease from when the reply arrives
     LEASE_BEYOND_PROOF   a server grants full leases, however old its proof of ownership is
     SEARCH_BEYOND_PROOF  it answers searches, however old that is
     STALE_PROOF       a proof counts from when its answer arrives, not from when it was begun
     NO_OPEN_WAIT      a region acknowledges at once that was not closed cleanly
     SHORT_OPEN_WAIT   it waits for a lease only, not for as long as a proof is good
     NO_WAIT_HANDOVER  a region that still waits after its opening forgets that when moved or split:
                       its closing passes for a clean one
     CUT_LEASE         a reply that does not reach the last event grants a lease
     NO_CLOSE_EVENT    coordinators are not told that a region was closed
     NO_CLOSE_WAIT     a moved region opens before all know that it was closed
     NO_SPLIT_WAIT     puts into a daughter do not wait until its opening is known
     NO_PUBLISH_WAIT   puts do not wait until it is known that the filter was replaced
     NO_RETREAT_WAIT   puts do not wait until it is known that the filter was given up
     NO_QUIET_POINT    a rebuild begins in the middle of writes
     NO_GAP_CHECK      a coordinator applies a reply that does not follow on what it has
     LEASE_UNAPPLIED   a reply that could not be applied extends the lease
     NO_START_CODE     the numbers of one incarnation of a server are taken for those of the next
     OLD_PROJECTION    bits older than what has been applied are loaded

   And one that the claim holds without, which check.py shows, too. It keeps a copy as of one number:

     YOUNG_PROJECTION  a reply that is cut carries bits younger than its events. A row that was
                       acknowledged when they were taken is in them; a later one waits for a number
                       that the coordinator does not reach without the flip                        */

#ifndef NS
#define NS 1        /* servers: 1 or 2 */
#endif
#ifndef NC
#define NC 1        /* coordinators: 1 or 2 */
#endif
#ifndef SLOTS
#define SLOTS 1     /* calls in flight: replies overtake one another when more than 1 */
#endif
#ifndef ROWS
#define ROWS 1      /* 1: only row ROW is written; 2: both */
#endif
#ifndef ROW
#define ROW 0
#endif
#ifndef L
#define L 1
#endif
#ifndef S
#define S 1
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef DELETES
#define DELETES 0   /* may rows be deleted? */
#endif
#ifndef REBUILDS
#define REBUILDS 0  /* may complete filters be replaced, or given up? */
#endif
#ifndef SPLITS
#define SPLITS 0    /* may the region split? */
#endif
#ifndef MOVES
#define MOVES 0     /* how many moves, crashes, memberships that run out */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef ZOMBIES
#define ZOMBIES 0   /* how many servers are expelled without knowing it */
#endif
#ifndef CUTS
#define CUTS 0      /* may replies be cut? */
#endif
/* -DPIPELINED: a server does not send again what it has sent once.
   -DSYNCED: at the start the coordinators know the region and have its bits. */

#define NONE NS

/* ---- What each holds ----------------------------------------------------------------------------

   Region 0 is the whole range until the split, then its lower half; region 1 is the upper half.
   Row h lies in half h. */

/* A region at its server. Each *_at is the number of the last such event, 0 when all know it. */
typedef Region {
  bit open;
  bit wide;       /* covers both halves */
  bit complete;   /* has a filter that coordinators may ask for */
  byte count;     /* its counter; the bit is count > 0 */
  bit building;   /* a new generation is counted beside it ... */
  byte count2;    /* ... here */
  byte wait;      /* ticks until puts may be acknowledged */
  byte reset_at;  /* opened, closed, filter replaced or given up: bits that were loaded are void */
  byte split_at;  /* became its own lower half, and kept its bits */
  byte flip_at;   /* the bit changed */
  byte set_at;    /* the bit became 1 */
  byte floor      /* puts wait for this number, whatever their bits */
};
/* What a server knows of a coordinator. */
typedef Holder {
  byte acked;     /* the largest number that it said it has applied */
  byte lease;     /* ticks left, counted from the answer */
  byte sent
};
typedef Server {
  bit up;         /* the process runs */
  bit member;     /* it has not been expelled */
  byte code;      /* incarnation */
  byte verified;  /* ticks for which its proof of ownership is good. Who has not been expelled proves
                     it all the time: a shorter grant is like an older poll */
  bit late;       /* the answer to its last proof is still under way */
  byte last;      /* number of its last event */
  Region r[2];
  Holder c[NC]
};

/* A coordinator's replica of what one server told. */
typedef Column { bit open; bit wide; bit complete; bit loaded; bit b };
typedef Replica { byte code; byte applied; byte lease; Column r[2] };

/* A poll on its way to a server, then its reply on the way back. Of each region the reply carries
   what the events behind `from` changed, as of `to`, and the bits when they were asked for. */
typedef Part {
  bit want; bit bits;
  bit open; bit wide; bit complete; bit b;
#ifdef YOUNG_PROJECTION
  bit young;      /* the bits; b is what the events changed */
#endif
  byte reset_at; byte split_at; byte flip_at
};
typedef Call {
  byte state;     /* 0 free, 1 poll, 2 reply, 3 reply that is being made: what it tells is fixed */
  byte age;       /* of a poll; from L on all are alike */
  byte grant;     /* ticks of lease left, counted from the sending of the poll */
  byte code;
  byte from;      /* in a poll: what the coordinator has applied */
  byte to;
  bit whole;      /* the full state, not a delta */
  Part r[2]
};

Server s[NS];
Replica v[NC * NS];
Call call[NC * NS * SLOTS];
#define V(c, x) v[(c) * NS + (x)]

/* The store: owners of regions, rows that stand. */
byte owner[2];
bit closing[2];       /* closed by its owner, who still waits until all know it */
bit graceful[2];      /* no owner, and the last one closed it cleanly */
bit split;
bit stored[2];
/* Only the claim reads these: */
bit acknowledged[2];  /* an acknowledged put of the row stands */
byte unknown_to[2];   /* 1 + the server that had the row's region open when another committed the row */

/* The put in progress on each row: 0 none, 1 counted but not committed, 2 committed and waiting. */
byte putting[2]; byte put_at[2]; byte need[2]; bit counted[2];
/* The delete in progress on each row: one of commit and decrement is still to come. */
bit deleting[2]; byte deleted_at[2];
bit late[2];          /* with INCREMENT_LATE: committed, but not counted yet */

byte moves; byte crashes; byte zombies;

/* Scratch; 0 between steps. */
byte i; byte j; byte m; byte q; bit flipped;

/* ---- Words --------------------------------------------------------------------------------------- */

#define HOME(h) (split -> (h) : 0)                     /* the region of row h */
#define HOME_SEEN(x, h) (s[x].r[0].wide -> 0 : (h))    /* as server x sees it */
#define IN(x, rr, h) ((rr) == (h) || ((rr) == 0 && s[x].r[0].wide))
#define OWNS(x, rr) (s[x].up && s[x].r[rr].open && owner[rr] == (x))
#define OWNED(rr) (owner[rr] != NONE && OWNS(owner[rr], rr))
#define ROOM(x) (s[x].last < WINDOW)

/* No write of the region is between its first step and its last. */
#define BUSY(x, h) \
  ((putting[h] == 1 && put_at[h] == (x)) || (deleting[h] && deleted_at[h] == (x)) || late[h])
#define QUIET(x, rr) (!(IN(x, rr, 0) && BUSY(x, 0)) && !(IN(x, rr, 1) && BUSY(x, 1)))

/* Every coordinator has acknowledged event n of server x, or its lease is over. */
#define KNOWN_BY(x, cc, n) (s[x].c[cc].lease == 0 || s[x].c[cc].acked >= (n))
#if NC == 1
#define KNOWN(x, n) KNOWN_BY(x, 0, n)
#else
#define KNOWN(x, n) (KNOWN_BY(x, 0, n) && KNOWN_BY(x, 1, n))
#endif

#define SAYS_NO(col) (col.open && col.complete && col.loaded && !col.b)
#define EXCLUDES(c, x, h) (V(c, x).lease > 0 && \
  ((SAYS_NO(V(c, x).r[0]) && ((h) == 0 || V(c, x).r[0].wide)) || ((h) == 1 && SAYS_NO(V(c, x).r[1]))))

/* The first half of the claim. It can come untrue only when a put is acknowledged or a coordinator learns something. */
inline check(c) {
  for (m : 0 .. NS - 1) {
    assert(!(acknowledged[0] && EXCLUDES(c, m, 0)));
    assert(!(acknowledged[1] && EXCLUDES(c, m, 1)))
  }
}

/* The second half. It can come untrue only when a put is acknowledged: a server that owns the region no
   more proves nothing anew. */
#define HAS_OPEN(x, h) ((s[x].r[0].open && ((h) == 0 || s[x].r[0].wide)) || ((h) == 1 && s[x].r[1].open))
#ifdef SEARCH_BEYOND_PROOF
#define SEARCHES_OLD(x, h) (s[x].up && HAS_OPEN(x, h) && owner[HOME(h)] != (x))
#else
#define SEARCHES_OLD(x, h) (s[x].up && HAS_OPEN(x, h) && owner[HOME(h)] != (x) && s[x].verified > 0)
#endif
#if NS == 2
#define NOBODY_SEARCHES_WITHOUT(h) (unknown_to[h] == 0 || !SEARCHES_OLD(unknown_to[h] - 1, h))
#define COMMITTED(x, h) unknown_to[h] = (s[1 - (x)].up && HAS_OPEN(1 - (x), h) -> 2 - (x) : 0)
#else
#define NOBODY_SEARCHES_WITHOUT(h) true
#define COMMITTED(x, h) skip
#endif

/* ---- The rules that can be switched off ---------------------------------------------------------- */

#ifdef NO_LEASE_WAIT
#define PUT_KNOWN(x, n) true
#else
#define PUT_KNOWN(x, n) KNOWN(x, n)
#endif
#ifdef NO_CLOSE_WAIT
#define CLOSE_KNOWN(x, rr) true
#else
#define CLOSE_KNOWN(x, rr) KNOWN(x, s[x].r[rr].reset_at)
#endif
#ifdef NO_WAIT_HANDOVER
#define WAITED(x, rr) 1
#else
#define WAITED(x, rr) (s[x].r[rr].wait == 0)
#endif
#ifdef NO_QUIET_POINT
#define QUIET_TO_BUILD(x, rr) true
#else
#define QUIET_TO_BUILD(x, rr) QUIET(x, rr)
#endif
#ifdef NO_GAP_CHECK
#define FOLLOWS(c, x, k) true
#else
#define FOLLOWS(c, x, k) (call[k].from <= V(c, x).applied)
#endif
#ifdef OLD_PROJECTION
#define FRESH(c, x, k) true
#else
#define FRESH(c, x, k) (call[k].to >= V(c, x).applied)
#endif
#ifdef YOUNG_PROJECTION
#define BITS(k) call[k].r[i].young
#else
#define BITS(k) call[k].r[i].b
#endif
#ifdef LEASE_UNAPPLIED
#define APPLIED(c, x, k) true
#else
#define APPLIED(c, x, k) (V(c, x).applied >= call[k].to)
#endif
#ifdef NO_START_CODE
#define SAME_SEQUENCE(a, b) ((a) != 0)
#else
#define SAME_SEQUENCE(a, b) ((a) == (b))
#endif

/* ---- Region servers ------------------------------------------------------------------------------- */

inline event(x) { s[x].last++ }

inline clear_region(x, rr) {
  s[x].r[rr].open = 0; s[x].r[rr].wide = 0; s[x].r[rr].complete = 0; s[x].r[rr].count = 0;
  s[x].r[rr].building = 0; s[x].r[rr].count2 = 0; s[x].r[rr].floor = 0;
  s[x].r[rr].split_at = 0; s[x].r[rr].flip_at = 0; s[x].r[rr].set_at = 0
}

/* Puts feed the filter and the generation that is being built. Sets `flipped`. */
inline increment(x, rr) {
  flipped = 0;
  if
  :: s[x].r[rr].complete ->
       s[x].r[rr].count++;
       if
       :: s[x].r[rr].count == 1 ->
            event(x); s[x].r[rr].flip_at = s[x].last; s[x].r[rr].set_at = s[x].last; flipped = 1
       :: else
       fi
  :: else
  fi;
  if :: s[x].r[rr].building -> s[x].r[rr].count2++ :: else fi
}
inline decrement(x, rr) {
  if
  :: s[x].r[rr].complete && s[x].r[rr].count > 0 ->
       s[x].r[rr].count--;
       if
       :: s[x].r[rr].count == 0 -> event(x); s[x].r[rr].flip_at = s[x].last; s[x].r[rr].set_at = 0
       :: else
       fi
  :: else
  fi;
  if :: s[x].r[rr].building && s[x].r[rr].count2 > 0 -> s[x].r[rr].count2-- :: else fi
}

/* The event that must be known before the put of row h is acknowledged. */
inline compute_need(x, rr, h) {
  need[h] = s[x].r[rr].set_at;
#ifdef NONFLIP_FREE
  if :: !flipped -> need[h] = 0 :: else fi;
#endif
  if :: need[h] < s[x].r[rr].floor -> need[h] = s[x].r[rr].floor :: else fi;
  flipped = 0
}

inline end_put(h) { putting[h] = 0; put_at[h] = 0; need[h] = 0; counted[h] = 0; late[h] = 0 }
inline end_delete(h) { deleting[h] = 0; deleted_at[h] = 0 }

/* The process is gone, and with it its memory: its puts are never answered, its filters lost. */
inline forget(x) {
  s[x].up = 0; s[x].verified = 0; s[x].late = 0; s[x].last = 0;
  for (i : 0 .. NC - 1) { s[x].c[i].acked = 0; s[x].c[i].lease = 0; s[x].c[i].sent = 0 }
  for (i : 0 .. 1) {
    clear_region(x, i); s[x].r[i].wait = 0; s[x].r[i].reset_at = 0;
    if :: putting[i] && put_at[i] == x -> end_put(i) :: else fi;
    if :: deleting[i] && deleted_at[i] == x -> end_delete(i) :: else fi
  }
  i = 0
}
inline expel(x) {
  s[x].member = 0;
  for (i : 0 .. 1) {
    if :: owner[i] == x -> owner[i] = NONE; graceful[i] = 0; closing[i] = 0 :: else fi
  }
  i = 0
}

proctype Process(byte x) {
  do
#ifdef STALE_PROOF
  :: d_step { s[x].up && s[x].late ->
       printf("server %d: has the answer to a proof that was begun long ago\n", x);
       s[x].late = 0; s[x].verified = S }
#endif
  /* It dies and the cluster sees that at once; to see it later is to open its regions later. */
  :: d_step { s[x].up && s[x].member && crashes < CRASHES ->
       printf("server %d: crashes\n", x); crashes++; expel(x); forget(x) }
  /* It is expelled, at any time, and goes on without knowing. */
  :: d_step { s[x].up && s[x].member && zombies < ZOMBIES ->
       printf("server %d: is expelled, and does not know\n", x); zombies++; expel(x);
#ifdef STALE_PROOF
       s[x].late = 1
#endif
     }
  :: d_step { s[x].up && !s[x].member -> printf("server %d: notices and exits\n", x); forget(x) }
  :: d_step { !s[x].up ->
       printf("server %d: starts anew\n", x);
       s[x].up = 1; s[x].member = 1; s[x].code++; s[x].verified = S }
  od
}

proctype Rebuild(byte x; byte rr) {
  do
  /* In a quiet moment the new generation is installed and the snapshot taken that will be scanned. */
  :: d_step { OWNS(x, rr) && !s[x].r[rr].building && QUIET_TO_BUILD(x, rr) &&
              (!s[x].r[rr].complete || (REBUILDS && ROOM(x))) ->
       printf("server %d: begins to count region %d anew\n", x, rr);
       s[x].r[rr].building = 1;
       s[x].r[rr].count2 = (IN(x, rr, 0) -> stored[0] : 0) + (IN(x, rr, 1) -> stored[1] : 0) }
  :: d_step { OWNS(x, rr) && s[x].r[rr].building ->
       event(x); printf("server %d: publishes the filter of region %d, event %d\n", x, rr, s[x].last);
#ifndef NO_PUBLISH_WAIT
       if :: s[x].r[rr].complete -> s[x].r[rr].floor = s[x].last :: else fi;
#endif
       s[x].r[rr].complete = 1; s[x].r[rr].count = s[x].r[rr].count2;
       s[x].r[rr].building = 0; s[x].r[rr].count2 = 0;
       s[x].r[rr].reset_at = s[x].last;
       s[x].r[rr].split_at = 0; s[x].r[rr].flip_at = 0; s[x].r[rr].set_at = 0 }
  /* Where both cannot be kept (bulk load, dropped index) the filter is given up first. */
  :: d_step { OWNS(x, rr) && s[x].r[rr].complete && REBUILDS && ROOM(x) && QUIET(x, rr) ->
       event(x); printf("server %d: gives up the filter of region %d, event %d\n", x, rr, s[x].last);
#ifndef NO_RETREAT_WAIT
       s[x].r[rr].floor = s[x].last;
#endif
       s[x].r[rr].complete = 0; s[x].r[rr].count = 0;
       s[x].r[rr].building = 0; s[x].r[rr].count2 = 0;
       s[x].r[rr].reset_at = s[x].last;
       s[x].r[rr].split_at = 0; s[x].r[rr].flip_at = 0; s[x].r[rr].set_at = 0 }
  od
}

/* ---- The cluster moves and splits regions ---------------------------------------------------------- */

inline open_region(x, rr) {
  clear_region(x, rr);
  owner[rr] = x; event(x);
  printf("server %d: opens region %d, event %d\n", x, rr, s[x].last);
  s[x].r[rr].open = 1; s[x].r[rr].wide = (rr == 0 && !split); s[x].r[rr].reset_at = s[x].last;
  s[x].r[rr].wait = 0;
#ifndef NO_OPEN_WAIT
  /* Leases of a former owner may be alive, and it may answer searches. */
#ifdef SHORT_OPEN_WAIT
  if :: !graceful[rr] -> s[x].r[rr].wait = L :: else fi;
#else
  if :: !graceful[rr] -> s[x].r[rr].wait = S :: else fi;
#endif
#endif
  graceful[rr] = 0;
  for (i : 0 .. 1) {
    if :: IN(x, rr, i) && unknown_to[i] == 1 + (x) -> unknown_to[i] = 0 :: else fi
  }
  i = 0
}

#define MAY_OPEN(x, rr) (owner[rr] == NONE && (rr == 0 || split) && s[x].up && s[x].member)

proctype Assignment(byte rr) {
  do
  :: d_step { OWNED(rr) && QUIET(owner[rr], rr) && moves < MOVES && ROOM(owner[rr]) ->
       m = owner[rr]; moves++; closing[rr] = 1; clear_region(m, rr);
#ifndef NO_CLOSE_EVENT
       event(m); s[m].r[rr].reset_at = s[m].last;
#endif
       printf("server %d: closes region %d, event %d\n", m, rr, s[m].last);
       m = 0 }
  /* Clean only when its own wait is over: one owner earlier may still be believed. */
  :: d_step { closing[rr] && CLOSE_KNOWN(owner[rr], rr) ->
       closing[rr] = 0; graceful[rr] = WAITED(owner[rr], rr);
       printf("server %d: hands region %d over, in good order: %d\n", owner[rr], rr, graceful[rr]);
       owner[rr] = NONE }
  :: d_step { MAY_OPEN(0, rr) -> open_region(0, rr) }
#if NS == 2
  :: d_step { MAY_OPEN(1, rr) -> open_region(1, rr) }
#endif
  od
}

/* The parent closes and its daughters open as one event. The upper one has no filter yet; the lower
   one neither, or it keeps the parent's. */
inline split_region(x, keeps) {
  split = 1; owner[1] = x; event(x);
  printf("server %d: splits region 0, event %d\n", x, s[x].last);
  clear_region(x, 1);
  s[x].r[1].open = 1; s[x].r[1].reset_at = s[x].last;
  if
  :: keeps ->
       printf("  the lower half keeps its filter\n");
       s[x].r[0].wide = 0; s[x].r[0].split_at = s[x].last;
       s[x].r[0].building = 0; s[x].r[0].count2 = 0
  :: else ->
       clear_region(x, 0); s[x].r[0].open = 1; s[x].r[0].reset_at = s[x].last
  fi;
#ifndef NO_SPLIT_WAIT
  s[x].r[0].floor = s[x].last; s[x].r[1].floor = s[x].last;
#endif
#ifdef NO_WAIT_HANDOVER
  s[x].r[0].wait = 0;
#endif
  s[x].r[1].wait = s[x].r[0].wait
}

proctype Split() {
  do
  :: d_step { !split && OWNED(0) && QUIET(owner[0], 0) -> m = owner[0]; split_region(m, 0); m = 0 }
  :: d_step { !split && OWNED(0) && QUIET(owner[0], 0) && s[owner[0]].r[0].complete ->
       m = owner[0]; split_region(m, 1); m = 0 }
  od
}

/* ---- Puts and deletes of one row --------------------------------------------------------------------- */

proctype Row(byte h) {
  do
  /* A put: count, commit, wait. One that changes nothing waits all the same. */
#ifndef INCREMENT_LATE
  :: d_step { OWNED(HOME(h)) && !putting[h] && ROOM(owner[HOME(h)]) ->
       q = HOME(h); j = owner[q]; put_at[h] = j; flipped = 0;
       if
       :: !stored[h] -> increment(j, q); counted[h] = 1; putting[h] = 1
       :: else -> putting[h] = 2
       fi;
       compute_need(j, q, h);
       printf("put of row %d at server %d: will wait for event %d\n", h, j, need[h]);
       q = 0; j = 0 }
#else
  :: d_step { OWNED(HOME(h)) && !putting[h] && ROOM(owner[HOME(h)]) && !stored[h] && !late[h] ->
       printf("put of row %d: committed, not counted\n", h); stored[h] = 1; late[h] = 1; COMMITTED(owner[HOME(h)], h) }
  :: d_step { OWNED(HOME(h)) && !putting[h] && late[h] ->
       q = HOME(h); j = owner[q]; put_at[h] = j; late[h] = 0;
       increment(j, q); compute_need(j, q, h); putting[h] = 2;
       printf("put of row %d at server %d: counted, waits for event %d\n", h, j, need[h]);
       q = 0; j = 0 }
  :: d_step { OWNED(HOME(h)) && !putting[h] && ROOM(owner[HOME(h)]) && stored[h] ->
       q = HOME(h); j = owner[q]; put_at[h] = j; compute_need(j, q, h); putting[h] = 2;
       printf("put of row %d at server %d: changes nothing, waits for event %d\n", h, j, need[h]);
       q = 0; j = 0 }
#endif
  :: d_step { putting[h] == 1 && OWNS(put_at[h], HOME(h)) ->
       printf("put of row %d: committed\n", h); stored[h] = 1; counted[h] = 0; putting[h] = 2;
       COMMITTED(put_at[h], h) }
  /* It fails before the commit and takes back what it counted; or it stops waiting, and may stand. */
  :: d_step { putting[h] == 1 ->
       printf("put of row %d: fails\n", h);
       j = put_at[h];
       if :: counted[h] -> q = HOME_SEEN(j, h); decrement(j, q) :: else fi;
       end_put(h); q = 0; j = 0 }
  :: d_step { putting[h] == 2 -> printf("put of row %d: outcome unknown\n", h); end_put(h) }
  :: d_step { putting[h] == 2 && s[put_at[h]].r[HOME(h)].wait == 0 && PUT_KNOWN(put_at[h], need[h]) ->
       printf("put of row %d: acknowledged\n", h);
       assert(NOBODY_SEARCHES_WITHOUT(h));
       end_put(h); acknowledged[h] = 1;
       for (i : 0 .. NC - 1) { check(i) }
       i = 0; m = 0 }

  /* A delete: commit, then take off. */
#ifndef DECREMENT_EARLY
  :: d_step { DELETES && OWNED(HOME(h)) && stored[h] && putting[h] != 1 && !deleting[h] &&
              ROOM(owner[HOME(h)]) ->
       printf("delete of row %d: committed\n", h);
       deleting[h] = 1; deleted_at[h] = owner[HOME(h)];
       stored[h] = 0; acknowledged[h] = 0; end_put(h) }
  :: d_step { deleting[h] ->
       j = deleted_at[h]; q = HOME_SEEN(j, h); decrement(j, q); end_delete(h);
       printf("delete of row %d: taken off\n", h);
       q = 0; j = 0 }
#else
  :: d_step { DELETES && OWNED(HOME(h)) && stored[h] && putting[h] != 1 && !deleting[h] &&
              ROOM(owner[HOME(h)]) ->
       printf("delete of row %d: taken off\n", h);
       q = HOME(h); j = owner[q]; decrement(j, q); deleting[h] = 1; deleted_at[h] = j;
       q = 0; j = 0 }
  :: d_step { deleting[h] && OWNS(deleted_at[h], HOME(h)) ->
       printf("delete of row %d: committed\n", h);
       stored[h] = 0; acknowledged[h] = 0; end_put(h); end_delete(h) }
#endif
  od
}

/* ---- Polls ------------------------------------------------------------------------------------------- */

inline clear_call(k) {
  call[k].state = 0; call[k].age = 0; call[k].grant = 0; call[k].code = 0; call[k].from = 0;
  call[k].to = 0; call[k].whole = 0;
  for (i : 0 .. 1) {
    call[k].r[i].want = 0; call[k].r[i].bits = 0; call[k].r[i].open = 0; call[k].r[i].wide = 0;
    call[k].r[i].complete = 0; call[k].r[i].b = 0;
#ifdef YOUNG_PROJECTION
    call[k].r[i].young = 0;
#endif
    call[k].r[i].reset_at = 0; call[k].r[i].split_at = 0; call[k].r[i].flip_at = 0
  }
  i = 0
}

inline send(c, x, k) {
  call[k].state = 1; call[k].code = V(c, x).code; call[k].from = V(c, x).applied;
  for (i : 0 .. 1) { call[k].r[i].want = V(c, x).r[i].complete && !V(c, x).r[i].loaded }
  i = 0
}

/* The bits that a reply carries are as of its last event, also when it is cut. */
inline take_bits(x, k) {
#ifdef YOUNG_PROJECTION
  for (i : 0 .. 1) {
    call[k].r[i].bits = call[k].r[i].bits && s[x].r[i].complete;
    call[k].r[i].young = call[k].r[i].bits && s[x].r[i].count > 0
  }
  i = 0
#else
  skip
#endif
}

/* What the server tells, as of its last event. */
inline tell(c, x, k) {
  if
  :: SAME_SEQUENCE(call[k].code, s[x].code) ->
       if :: call[k].from > s[x].c[c].acked -> s[x].c[c].acked = call[k].from :: else fi;
#ifdef PIPELINED
       if :: call[k].from < s[x].c[c].sent -> call[k].from = s[x].c[c].sent :: else fi
#endif
  :: else -> call[k].whole = 1; call[k].from = 0
  fi;
  call[k].code = s[x].code; call[k].to = s[x].last;
#ifdef PIPELINED
  s[x].c[c].sent = s[x].last;
#endif
  for (i : 0 .. 1) {
    if :: s[x].r[i].reset_at > call[k].from -> call[k].r[i].reset_at = s[x].r[i].reset_at :: else fi;
    if :: s[x].r[i].split_at > call[k].from -> call[k].r[i].split_at = s[x].r[i].split_at :: else fi;
    if :: s[x].r[i].flip_at > call[k].from -> call[k].r[i].flip_at = s[x].r[i].flip_at :: else fi;
    call[k].r[i].bits = call[k].r[i].want && s[x].r[i].complete && !call[k].whole;
    call[k].r[i].want = 0;
    if
    :: call[k].whole || call[k].r[i].reset_at ->
         call[k].r[i].open = s[x].r[i].open; call[k].r[i].wide = s[x].r[i].wide;
         call[k].r[i].complete = s[x].r[i].complete
    :: else
    fi;
    call[k].r[i].b = (call[k].r[i].bits || call[k].r[i].flip_at) && s[x].r[i].count > 0
  }
  i = 0;
  take_bits(x, k)
}

/* The server counts the lease from now, the coordinator from when it sent the poll. A reply that does
   not reach the last event grants none. */
inline give_lease(c, x, k) {
#ifdef LEASE_BEYOND_PROOF
  m = L;
#else
  m = (s[x].verified < L -> s[x].verified : L);
#endif
#ifndef CUT_LEASE
  if :: call[k].to != s[x].last -> m = 0 :: else fi;
#endif
  if :: s[x].c[c].lease < m -> s[x].c[c].lease = m :: else fi;
#ifdef COUNT_FROM_REPLY
  call[k].grant = m;
#else
  call[k].grant = (m > call[k].age -> m - call[k].age : 0);
#endif
  call[k].age = 0; call[k].state = 2; m = 0
}

inline reset_column(c, x, k) {
  V(c, x).r[i].open = call[k].r[i].open; V(c, x).r[i].wide = call[k].r[i].wide;
  V(c, x).r[i].complete = call[k].r[i].complete; V(c, x).r[i].loaded = 0; V(c, x).r[i].b = 0
}

/* A full reply replaces all, unless it is of an older incarnation or older than what is applied. A
   delta must follow on what is applied; what the coordinator has already is skipped. The lease is for
   those who have applied all that the server had said when it granted it. */
inline receive(c, x, k) {
  if
  :: call[k].whole && (call[k].code > V(c, x).code ||
                       (call[k].code == V(c, x).code && call[k].to >= V(c, x).applied)) ->
       if :: call[k].code != V(c, x).code -> V(c, x).lease = 0 :: else fi;
       V(c, x).code = call[k].code; V(c, x).applied = call[k].to;
       for (i : 0 .. 1) { reset_column(c, x, k) }
  :: !call[k].whole && SAME_SEQUENCE(V(c, x).code, call[k].code) && FOLLOWS(c, x, k) ->
       for (i : 0 .. 1) {
         if :: call[k].r[i].reset_at > V(c, x).applied -> reset_column(c, x, k) :: else fi;
         if :: call[k].r[i].split_at > V(c, x).applied -> V(c, x).r[i].wide = 0 :: else fi;
         if
         :: call[k].r[i].flip_at > V(c, x).applied && V(c, x).r[i].loaded ->
              V(c, x).r[i].b = call[k].r[i].b
         :: else
         fi;
         if
         :: call[k].r[i].bits && V(c, x).r[i].complete && FRESH(c, x, k) ->
              V(c, x).r[i].loaded = 1; V(c, x).r[i].b = BITS(k)
         :: else
         fi
       }
       if :: call[k].to > V(c, x).applied -> V(c, x).applied = call[k].to :: else fi
  :: else
  fi;
  if
  :: SAME_SEQUENCE(V(c, x).code, call[k].code) && APPLIED(c, x, k) && call[k].grant > V(c, x).lease ->
       V(c, x).lease = call[k].grant
  :: else
  fi;
  clear_call(k)
}

/* Numbers that no process will name again are forgotten: a server's sequence is counted from the least one
   at which a coordinator, a call or the server's record of acknowledgements stands. That changes nothing
   that can happen, and makes the number of states finite. */
#define SHIFT(n) n = ((n) > m -> (n) - m : 0)
#define CALL_OF_SEQUENCE(x) (call[q].state > 0 && call[q].code == s[x].code)
inline renumber(x) {
  m = s[x].last;
  for (i : 0 .. NC - 1) {
    if :: s[x].c[i].acked < m -> m = s[x].c[i].acked :: else fi;
    if :: V(i, x).code == s[x].code && V(i, x).applied < m -> m = V(i, x).applied :: else fi;
    for (j : 0 .. SLOTS - 1) {
      q = (i * NS + x) * SLOTS + j;
      if :: CALL_OF_SEQUENCE(x) && call[q].from < m -> m = call[q].from :: else fi
    }
  }
  if
  :: m > 0 ->
    s[x].last = s[x].last - m;
    for (i : 0 .. NC - 1) {
      SHIFT(s[x].c[i].acked); SHIFT(s[x].c[i].sent);
      if :: V(i, x).code == s[x].code -> SHIFT(V(i, x).applied) :: else fi;
      for (j : 0 .. SLOTS - 1) {
        q = (i * NS + x) * SLOTS + j;
        if
        :: CALL_OF_SEQUENCE(x) ->
             SHIFT(call[q].from); SHIFT(call[q].to);
             SHIFT(call[q].r[0].reset_at); SHIFT(call[q].r[1].reset_at);
             SHIFT(call[q].r[0].split_at); SHIFT(call[q].r[1].split_at);
             SHIFT(call[q].r[0].flip_at); SHIFT(call[q].r[1].flip_at)
        :: else
        fi
      }
    }
    for (i : 0 .. 1) {
      SHIFT(s[x].r[i].reset_at); SHIFT(s[x].r[i].split_at); SHIFT(s[x].r[i].flip_at);
      SHIFT(s[x].r[i].set_at); SHIFT(s[x].r[i].floor);
      if :: putting[i] && put_at[i] == x -> SHIFT(need[i]) :: else fi
    }
  :: else
  fi;
  i = 0; j = 0; q = 0; m = 0
}

proctype Poll(byte c; byte x; byte k) {
  do
  :: d_step { call[k].state == 0 ->
       send(c, x, k);
       printf("coordinator %d: polls server %d, has applied %d\n", c, x, call[k].from) }
  /* (A poll that is lost is one that is sent later.) */
  :: d_step { call[k].state == 1 && s[x].up ->
       tell(c, x, k); give_lease(c, x, k);
       printf("server %d: answers coordinator %d, events %d to %d, lease %d\n", x, c,
              call[k].from, call[k].to, call[k].grant) }
#if CUTS
  /* A reply that is cut tells what was so some events ago. The whole state is never cut. */
  :: d_step { call[k].state == 1 && s[x].up && call[k].code == s[x].code ->
       tell(c, x, k); call[k].state = 3;
       printf("server %d: tells coordinator %d events %d to %d\n", x, c, call[k].from, call[k].to) }
  :: d_step { call[k].state == 3 && s[x].up && call[k].code == s[x].code ->
       take_bits(x, k); give_lease(c, x, k);
       printf("server %d: sends the reply to coordinator %d, events %d to %d, lease %d\n", x, c,
              call[k].from, call[k].to, call[k].grant) }
  :: d_step { call[k].state == 3 && !(s[x].up && call[k].code == s[x].code) ->
       printf("a reply of server %d to coordinator %d is never sent\n", x, c);
       clear_call(k); renumber(x) }
#endif
  :: d_step { call[k].state == 2 ->
       printf("coordinator %d: has the reply of server %d, events %d to %d, lease %d\n", c, x,
              call[k].from, call[k].to, call[k].grant);
       receive(c, x, k); check(c); renumber(x) }
  :: d_step { call[k].state == 2 ->
       printf("a reply of server %d to coordinator %d is lost\n", x, c); clear_call(k); renumber(x) }
  od
}

/* ---- Time ---------------------------------------------------------------------------------------------- */

#define DOWN(t) t = ((t) > 0 -> (t) - 1 : 0)

proctype Clock() {
  do
  :: d_step { true ->
       printf("tick\n");
       for (i : 0 .. NS - 1) {
         DOWN(s[i].r[0].wait); DOWN(s[i].r[1].wait);
         if :: !s[i].member -> DOWN(s[i].verified) :: else fi;
         for (j : 0 .. NC - 1) { DOWN(s[i].c[j].lease); DOWN(V(j, i).lease) }
       }
       for (i : 0 .. NC * NS * SLOTS - 1) {
         if :: (call[i].state == 1 || call[i].state == 3) && call[i].age < L -> call[i].age++ :: else fi;
#ifndef COUNT_FROM_REPLY
         DOWN(call[i].grant)
#endif
       }
       i = 0; j = 0 }
  od
}

/* Server 0 has the region open, its filter complete and empty. */
init {
  atomic {
    d_step {
      for (i : 0 .. NS - 1) { s[i].up = 1; s[i].member = 1; s[i].code = 1; s[i].verified = S }
      owner[1] = NONE; s[0].last = 1;
      s[0].r[0].open = 1; s[0].r[0].wide = 1; s[0].r[0].complete = 1; s[0].r[0].reset_at = 1;
#ifdef SYNCED
      for (i : 0 .. NC - 1) {
        for (j : 0 .. NS - 1) { V(i, j).code = 1 }
        V(i, 0).applied = 1; s[0].c[i].acked = 1;
        V(i, 0).r[0].open = 1; V(i, 0).r[0].wide = 1; V(i, 0).r[0].complete = 1; V(i, 0).r[0].loaded = 1
      }
#endif
      i = 0; j = 0
    }
    for (i : 0 .. NC - 1) { for (j : 0 .. NS - 1) { for (m : 0 .. SLOTS - 1) {
      run Poll(i, j, (i * NS + j) * SLOTS + m) } } }
    for (i : 0 .. NS - 1) {
      run Process(i); run Rebuild(i, 0);
      if :: SPLITS -> run Rebuild(i, 1) :: else fi
    }
    run Assignment(0); run Row(ROW);
    if :: ROWS == 2 -> run Row(1 - ROW) :: else fi;
    if :: SPLITS -> run Assignment(1); run Split() :: else fi;
    run Clock();
    i = 0; j = 0; m = 0
  }
}
