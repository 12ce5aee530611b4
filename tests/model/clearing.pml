/* How a cell of a filter is cleared that removals have emptied, and why no acknowledged row is missed.

   A bit says that some entry of a region falls into the cell. Nothing counts them: a removal leaves the
   bit, and a clearer searches the index, later, for what is left. An insert into an occupied cell flips
   nothing and waits for nobody, and the search does not see it before its commit.

   Claim     A coordinator's bit is 1 while an acknowledged row with a value in the cell stands.
   Modelled  One cell. Two writers, each with a row of its own that has a value in the cell; they insert,
             delete, write the same again, and do not always learn whether a write was committed. One
             clearer. One coordinator with a lease, which applies events one by one, at any time. The
             index may lose an entry, and is rebuilt then.
   Left out  All of routing.pml; the range of values, whose ends follow the same rules.

   Each rule has a switch, -DNAME, that drops it; the letters are those of tamis/feed/index_filter.h:

     LEAVE_EARLY       (a) a write leaves before its commit
     UNKNOWN_LEAVES    (a) so does one whose outcome is unknown
     CLEAR_AMID_WRITES (b) the cell is looked at although a write is registered
     OLD_SNAPSHOT      (c) the snapshot is taken before that
     CLEAR_ANYWAY      (d) the bit is cleared although a write has registered since
     CLEAR_INCOMPLETE  (e) it is cleared while entries may be missing
     NONFLIP_FREE      a put that finds the bit set waits for no flip of others                        */

#define EVENTS 3  /* that the coordinator has not applied; nothing new flips while there are so many */

/* The store. */
bit row[2];         /* the row stands */
bit entry[2];       /* so does its entry */
bit acknowledged[2];
bit complete = 1;   /* each row that stands has its entry */

/* The filter. */
bit occupied;
bit removed;        /* an entry of the cell was removed since it was looked at */
byte under_way;     /* writes that are registered */
bit candidate;      /* the clearer looks at the cell, and no write has registered since */
byte set_in;        /* so many events are still to be applied up to the last one that set the bit */

/* The feed, and the coordinator. */
bit event[EVENTS]; byte events;
bit known;

byte need[2];       /* so many events are still to be applied before the put is acknowledged */
byte i;

#define ROOM (events < EVENTS)

inline flip(value) { event[events] = value; events++; occupied = value }

inline register() {
  under_way++;
#ifndef CLEAR_ANYWAY
  candidate = 0;
#endif
  if
  :: !occupied -> flip(1); set_in = events
  :: else
  fi
}

inline check() {
  assert(!(acknowledged[0] && !known));
  assert(!(acknowledged[1] && !known))
}

proctype Writer(byte h) {
  bit flipped;
  do
  /* A put of a row that is not there. */
  :: d_step { !row[h] && ROOM && under_way < 4 ->
       flipped = !occupied; register(); printf("writer %d: registers, bit %d\n", h, occupied) };
     if
     :: d_step { true -> row[h] = 1; entry[h] = 1; printf("writer %d: commits\n", h) };
        d_step { true -> under_way--; printf("writer %d: leaves\n", h) }
#ifdef LEAVE_EARLY
     :: d_step { true -> under_way--; printf("writer %d: leaves\n", h) };
        d_step { true -> row[h] = 1; entry[h] = 1; printf("writer %d: commits\n", h) }
#endif
     /* It fails, and does nothing. */
     :: d_step { true -> under_way--; removed = 1; printf("writer %d: fails\n", h); flipped = 0 };
        goto again
     /* Nobody learns the outcome; it is committed at some later time, or never. */
     :: d_step { true ->
#ifdef UNKNOWN_LEAVES
          under_way--;
#endif
          printf("writer %d: outcome unknown\n", h); flipped = 0 };
        if
        :: d_step { true -> row[h] = 1; entry[h] = 1; printf("writer %d: is committed late\n", h) }
        :: skip
        fi;
        goto again
     fi;
wait: skip;
     d_step { true ->
       need[h] = set_in;
#ifdef NONFLIP_FREE
       if :: !flipped -> need[h] = 0 :: else fi;
#endif
       printf("writer %d: waits for %d events\n", h, need[h]) };
     d_step { need[h] == 0 ->
       acknowledged[h] = 1; flipped = 0; printf("writer %d: acknowledged\n", h); check() }
  /* A put of a row that is there changes nothing, and waits all the same. */
  :: d_step { row[h] && !acknowledged[h] -> flipped = 0; printf("writer %d: writes the same\n", h) };
     goto wait
  :: d_step { row[h] ->
       row[h] = 0; entry[h] = 0; acknowledged[h] = 0; printf("writer %d: deletes\n", h) };
     d_step { true -> removed = 1; printf("writer %d: has removed\n", h) }
  again: skip
  od
}

#ifdef CLEAR_INCOMPLETE
#define MAY_CLEAR true
#else
#define MAY_CLEAR complete
#endif
#ifdef CLEAR_AMID_WRITES
#define NO_WRITES true
#else
#define NO_WRITES (under_way == 0)
#endif

proctype Clearer() {
  bit found_none;
  do
#ifdef OLD_SNAPSHOT
  :: d_step { removed && occupied ->
       found_none = !entry[0] && !entry[1]; printf("clearer: snapshot, found none: %d\n", found_none) };
     if
     :: d_step { removed && occupied && NO_WRITES && MAY_CLEAR ->
          removed = 0; candidate = 1; printf("clearer: looks at the cell\n") }
     :: skip; goto over
     fi;
#else
  :: d_step { removed && occupied && NO_WRITES && MAY_CLEAR ->
       removed = 0; candidate = 1; printf("clearer: looks at the cell\n") };
     d_step { true ->
       found_none = !entry[0] && !entry[1]; printf("clearer: snapshot, found none: %d\n", found_none) };
#endif
     d_step { ROOM ->
       if
       :: found_none && candidate && occupied && MAY_CLEAR -> flip(0); printf("clearer: clears\n")
       :: else
       fi;
       candidate = 0; found_none = 0 };
  over: skip
  od
}

/* An entry is lost. That is noticed, and the index is rebuilt: until then it is not complete. */
proctype Rebuild(byte h) {
  d_step { entry[h] && under_way == 0 ->
    entry[h] = 0; complete = 0; candidate = (MAY_CLEAR -> candidate : 0);
    printf("the entry of row %d is lost\n", h) };
  if
  :: d_step { row[h] && !entry[h] && ROOM -> register(); printf("rebuild: registers\n") };
     d_step { true ->
       if :: row[h] -> entry[h] = 1; printf("rebuild: writes the entry\n") :: else fi };
     d_step { true -> under_way--; complete = 1; printf("rebuild: done\n") }
  :: d_step { !row[h] || entry[h] -> complete = 1 }
  fi
}

proctype Coordinator() {
  do
  :: d_step { events > 0 ->
       known = event[0]; printf("coordinator: applies %d\n", known);
       event[0] = event[1]; event[1] = event[2]; event[2] = 0; events--;
       if :: set_in > 0 -> set_in-- :: else fi;
       if :: need[0] > 0 -> need[0]-- :: else fi;
       if :: need[1] > 0 -> need[1]-- :: else fi;
       check() }
  od
}

init {
  atomic { run Writer(0); run Writer(1); run Clearer(); run Rebuild(0); run Coordinator() }
}
