/*
 * The ten programs of nccl-tests over MPI instead of NCCL: real ranks exchange, check and time real data in host memory,
 * and what is printed has nccl-tests' format. Which program it is, its name says (`all_reduce_perf` and so on).
 *
 * Each rank stands for one GPU. What belongs to hardware is stood in for, by variables:
 *   HARNESS_TEST_COUNTERS      a folder with one folder per NIC of a node, `{host}` in it for the node's name: the bytes
 *                              that leave and reach the node are added to the counters there
 *   HARNESS_TEST_WRONG_ON      a node whose ranks receive one wrong element in each operation
 */
#include <ctype.h>
#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALLTOALL, BROADCAST, REDUCE, GATHER, SCATTER, SENDRECV, HYPERCUBE, OPS };

static const char *const NAMES[OPS] = { "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast",
                                        "reduce",     "gather",     "scatter",        "sendrecv", "hypercube" };

struct dtype {
  const char *name;
  size_t bytes;
  MPI_Datatype of_mpi;
};

struct options {
  long long min_bytes, max_bytes, step_bytes, factor;
  int iterations, warmup, aggregated, check, gpus, threads, root, blocking, graph;
  const char *dtype, *redop;
};

static enum op op;
static int rank, ranks, root;
static struct dtype dtype;
static MPI_Op redop;
static const char *redop_name;
static struct options options = { 32 << 20, 32 << 20, 1 << 20, 1, 20, 5, 1, 1, 1, 1, 0, 0, 0, "float", "sum" };
/* By rank. */
static char (*hosts)[256];

static void fail(const char *what, const char *which) {
  if (rank == 0) fprintf(stderr, "%s_perf: %s: %s\n", NAMES[op], what, which);
  MPI_Finalize();
  exit(EXIT_FAILURE);
}

/* Elements that a rank sends and receives, and those of the one part that the operation is counted in. */
struct counts {
  size_t send, recv, part;
};

static struct counts counts_of(size_t bytes) {
  size_t all = bytes / dtype.bytes;
  /* As nccl-tests aligns it. */
  size_t part = (all / (size_t)ranks) & -(16 / dtype.bytes);
  switch (op) {
  case ALL_GATHER:
  case GATHER:
  case HYPERCUBE:
    return (struct counts){ part, part * (size_t)ranks, part };
  case REDUCE_SCATTER:
  case SCATTER:
    return (struct counts){ part * (size_t)ranks, part, part };
  case ALLTOALL:
    return (struct counts){ part * (size_t)ranks, part * (size_t)ranks, part };
  default:
    return (struct counts){ all, all, all };
  }
}

static int reduces(void) { return op == ALL_REDUCE || op == REDUCE || op == REDUCE_SCATTER; }

static int has_root(void) { return op == BROADCAST || op == REDUCE || op == GATHER || op == SCATTER; }

/* What is checked in place, as there: the others' data would be overwritten before it is sent. */
static int checks_in_place(void) { return op != ALLTOALL && op != SENDRECV; }

/* Element `at` of what a rank sends. Small, so that sums of floats are exact. */
static int64_t value_of(int of_rank, size_t at) {
  uint64_t mixed = (at + 1) * 2654435761u + (uint64_t)(of_rank + 1) * 40503u;
  mixed ^= mixed >> 15;
  return redop == MPI_PROD && reduces() ? 1 + (mixed % 8 == 0) : (int64_t)(mixed % 11);
}

static void put(void *buffer, size_t at, int64_t value) {
  const char *name = dtype.name;
  if (!strcmp(name, "float")) ((float *)buffer)[at] = (float)value;
  else if (!strcmp(name, "double")) ((double *)buffer)[at] = (double)value;
  else if (dtype.bytes == 1) ((uint8_t *)buffer)[at] = (uint8_t)value;
  else if (dtype.bytes == 4) ((uint32_t *)buffer)[at] = (uint32_t)value;
  else ((uint64_t *)buffer)[at] = (uint64_t)value;
}

static int64_t reduced(size_t at) {
  int64_t value = value_of(0, at);
  for (int other = 1; other < ranks; other++) {
    int64_t next = value_of(other, at);
    if (redop == MPI_SUM) value += next;
    else if (redop == MPI_PROD) value *= next;
    else if (redop == MPI_MIN) value = next < value ? next : value;
    else value = next > value ? next : value;
  }
  return value;
}

/* Element `at` of what this rank must have received. */
static int64_t wanted(size_t at, size_t part) {
  switch (op) {
  case ALL_REDUCE:
  case REDUCE:
    return reduced(at);
  case REDUCE_SCATTER:
    return reduced((size_t)rank * part + at);
  case ALL_GATHER:
  case GATHER:
  case HYPERCUBE:
    return value_of((int)(at / part), at % part);
  case ALLTOALL:
    return value_of((int)(at / part), (size_t)rank * part + at % part);
  case BROADCAST:
    return value_of(root, at);
  case SCATTER:
    return value_of(root, (size_t)rank * part + at);
  default:
    return value_of((rank + ranks - 1) % ranks, at);
  }
}

static int receives(void) { return rank == root || (op != REDUCE && op != GATHER); }

/* Once. In place the one buffer is sent from and received into; returns where what was received begins. */
static char *run(char *send, char *recv, struct counts counts, int in_place) {
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype of = dtype.of_mpi;
  int all = (int)counts.send, part = (int)counts.part;
  size_t part_bytes = counts.part * dtype.bytes;
  void *from = in_place ? MPI_IN_PLACE : (void *)send;
  char *into = in_place ? send : recv;
  switch (op) {
  case ALL_REDUCE:
    MPI_Allreduce(from, into, all, of, redop, world);
    break;
  case ALL_GATHER:
    MPI_Allgather(from, part, of, into, part, of, world);
    break;
  case REDUCE_SCATTER:
    MPI_Reduce_scatter_block(from, into, part, of, redop, world);
    break;
  case ALLTOALL:
    MPI_Alltoall(from, part, of, into, part, of, world);
    break;
  case BROADCAST:
    if (!in_place && rank == root) memcpy(recv, send, counts.send * dtype.bytes);
    MPI_Bcast(into, all, of, root, world);
    break;
  case REDUCE:
    if (in_place && rank != root) MPI_Reduce(send, NULL, all, of, redop, root, world);
    else MPI_Reduce(from, into, all, of, redop, root, world);
    break;
  case GATHER:
    if (in_place && rank != root) MPI_Gather(send + (size_t)rank * part_bytes, part, of, NULL, part, of, root, world);
    else MPI_Gather(from, part, of, into, part, of, root, world);
    break;
  case SCATTER:
    if (in_place && rank == root) {
      MPI_Scatter(send, part, of, MPI_IN_PLACE, part, of, root, world);
      return send + (size_t)rank * part_bytes;
    }
    MPI_Scatter(send, part, of, into, part, of, root, world);
    break;
  case SENDRECV: {
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    if (in_place) MPI_Sendrecv_replace(send, all, of, next, 0, last, 0, world, MPI_STATUS_IGNORE);
    else MPI_Sendrecv(send, all, of, next, 0, recv, all, of, last, 0, world, MPI_STATUS_IGNORE);
    break;
  }
  default:
    if (!in_place) memcpy(recv + (size_t)rank * part_bytes, send, part_bytes);
    for (int corner = 1; corner < ranks; corner *= 2) {
      int other = rank ^ corner;
      size_t own = (size_t)(rank & ~(corner - 1)) * part_bytes, its = (size_t)(other & ~(corner - 1)) * part_bytes;
      MPI_Sendrecv(into + own, part * corner, of, other, 0, into + its, part * corner, of, other, 0, world,
                   MPI_STATUS_IGNORE);
    }
  }
  return into;
}

/* What a rank sends, where it sends it from. */
static void fill(char *send, char *recv, struct counts counts, int in_place) {
  size_t most = counts.send > counts.recv ? counts.send : counts.recv;
  int own_part = in_place && (op == ALL_GATHER || op == GATHER || op == HYPERCUBE);
  char *from = own_part ? send + (size_t)rank * counts.part * dtype.bytes : send;
  memset(recv, 0, most * dtype.bytes);
  memset(send, 0, most * dtype.bytes);
  for (size_t at = 0; at < counts.send; at++) put(from, at, value_of(rank, at));
}

static long long wrong_elements(const char *received, struct counts counts) {
  unsigned char right[8];
  long long wrong = 0, all = 0;
  if (receives())
    for (size_t at = 0; at < counts.recv; at++) {
      put(right, 0, wanted(at, counts.part));
      wrong += memcmp(received + at * dtype.bytes, right, dtype.bytes) != 0;
    }
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* The bytes that one rank sends another in one operation, each part by the shortest path. */
static size_t bytes_between(int from, int to, struct counts counts) {
  size_t part = counts.part * dtype.bytes;
  switch (op) {
  case ALL_REDUCE:
    return 2 * part / (size_t)ranks;
  case BROADCAST:
  case SCATTER:
    return from == root ? part : 0;
  case REDUCE:
  case GATHER:
    return to == root ? part : 0;
  case SENDRECV:
    return to == (from + 1) % ranks ? part : 0;
  case HYPERCUBE: {
    int corner = from ^ to;
    return (corner & (corner - 1)) == 0 ? part * (size_t)corner : 0;
  }
  default:
    return part;
  }
}

static void add_to(const char *folder, const char *device, const char *counter, unsigned long long bytes) {
  char path[1024];
  unsigned long long before = 0;
  snprintf(path, sizeof path, "%s/%s/ports/1/hw_counters/%s", folder, device, counter);
  FILE *file = fopen(path, "r+");
  if (!file) return;
  if (fscanf(file, "%llu", &before) != 1) before = 0;
  /* Over the last number at once, since it only grows and is read meanwhile. */
  rewind(file);
  fprintf(file, "%llu\n", before + bytes);
  fclose(file);
}

/* The first rank of each node adds what all its ranks moved to and from other nodes, evenly over the NICs. */
static void count_bytes(struct counts counts, int times) {
  const char *pattern = getenv("HARNESS_TEST_COUNTERS");
  if (!pattern) return;
  for (int other = 0; other < rank; other++)
    if (!strcmp(hosts[other], hosts[rank])) return;
  unsigned long long sent = 0, received = 0;
  for (int from = 0; from < ranks; from++)
    for (int to = 0; to < ranks; to++) {
      int leaves = !strcmp(hosts[from], hosts[rank]), stays = !strcmp(hosts[to], hosts[rank]);
      if (leaves && !stays) sent += bytes_between(from, to, counts);
      if (!leaves && stays) received += bytes_between(from, to, counts);
    }
  char folder[768];
  const char *host = strstr(pattern, "{host}");
  if (host) snprintf(folder, sizeof folder, "%.*s%s%s", (int)(host - pattern), pattern, hosts[rank], host + 6);
  else snprintf(folder, sizeof folder, "%s", pattern);
  int devices = 0;
  struct dirent *entry;
  for (int pass = 0; pass < 2; pass++) {
    DIR *found = opendir(folder);
    if (!found) return;
    while ((entry = readdir(found))) {
      if (entry->d_name[0] == '.') continue;
      if (pass == 0) {
        devices++;
        continue;
      }
      unsigned long long out = sent * (unsigned)times / (unsigned)devices;
      unsigned long long in = received * (unsigned)times / (unsigned)devices;
      add_to(folder, entry->d_name, "tx_bytes", out);
      add_to(folder, entry->d_name, "rdma_write_bytes", out);
      add_to(folder, entry->d_name, "rx_bytes", in);
      add_to(folder, entry->d_name, "rdma_write_recv_bytes", in);
    }
    closedir(found);
  }
}

/* Seconds of one operation, the mean over the ranks. */
static double timed(char *send, char *recv, struct counts counts, int in_place, int times) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = MPI_Wtime();
  for (int time = 0; time < times; time++) run(send, recv, counts, in_place);
  double own = (MPI_Wtime() - begun) / times, sum = 0;
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  count_bytes(counts, times);
  return sum / ranks;
}

static void bandwidths(struct counts counts, double seconds, double *algorithm, double *bus) {
  double bytes = (double)(counts.part * dtype.bytes), n = ranks, factor = 1;
  switch (op) {
  case ALL_REDUCE:
    factor = 2 * (n - 1) / n;
    break;
  case ALL_GATHER:
  case REDUCE_SCATTER:
  case ALLTOALL:
  case GATHER:
  case SCATTER:
    bytes *= n;
    factor = (n - 1) / n;
    break;
  case HYPERCUBE:
    bytes *= n - 1;
    break;
  default:
    break;
  }
  *algorithm = seconds > 0 ? bytes / 1e9 / seconds : 0;
  *bus = *algorithm * factor;
}

/* One half of a row. Returns the bandwidth on the bus, and adds what was wrong. */
static double half(char *send, char *recv, struct counts counts, int in_place, long long *wrong) {
  double algorithm, bus;
  double seconds = timed(send, recv, counts, in_place, options.iterations * options.aggregated);
  bandwidths(counts, seconds, &algorithm, &bus);
  char time[32], errors[32] = "N/A";
  double us = seconds * 1e6;
  snprintf(time, sizeof time, us >= 10000 ? "%7.0f" : us >= 100 ? "%7.1f" : "%7.2f", us);
  if (options.check && (!in_place || checks_in_place())) {
    fill(send, recv, counts, in_place);
    char *received = run(send, recv, counts, in_place);
    const char *wrong_on = getenv("HARNESS_TEST_WRONG_ON");
    if (wrong_on && !strcmp(wrong_on, hosts[rank]) && counts.recv > 0) put(received, 0, 99);
    long long found = wrong_elements(received, counts);
    snprintf(errors, sizeof errors, "%g", (double)found);
    *wrong += found;
  }
  if (rank == 0) printf("  %7s  %6.2f  %6.2f  %5s", time, algorithm, bus, errors);
  return bus;
}

static long long size_of(const char *text, const char *option) {
  char *unit;
  double size = strtod(text, &unit);
  switch (toupper((unsigned char)*unit)) {
  case 'G':
    size *= 1024;
    /* fall through */
  case 'M':
    size *= 1024;
    /* fall through */
  case 'K':
    size *= 1024;
    break;
  case '\0':
    break;
  default:
    size = -1;
  }
  if (size < 0 || size > 1e15 || unit == text) fail("invalid size specified for", option);
  return (long long)size;
}

static void read_options(int argc, char **argv) {
  static const struct option LONG[] = {
    { "nthreads", 1, 0, 't' },     { "ngpus", 1, 0, 'g' },         { "minbytes", 1, 0, 'b' },
    { "maxbytes", 1, 0, 'e' },     { "stepbytes", 1, 0, 'i' },     { "stepfactor", 1, 0, 'f' },
    { "iters", 1, 0, 'n' },        { "agg_iters", 1, 0, 'm' },     { "warmup_iters", 1, 0, 'w' },
    { "run_cycles", 1, 0, 'N' },   { "parallel_init", 1, 0, 'p' }, { "check", 1, 0, 'c' },
    { "op", 1, 0, 'o' },           { "datatype", 1, 0, 'd' },      { "root", 1, 0, 'r' },
    { "blocking", 1, 0, 'z' },     { "stream_null", 1, 0, 'y' },   { "timeout", 1, 0, 'T' },
    { "cudagraph", 1, 0, 'G' },    { "report_cputime", 1, 0, 'C' }, { "average", 1, 0, 'a' },
    { "local_register", 1, 0, 'R' }, { 0, 0, 0, 0 },
  };
  int which;
  opterr = rank == 0;
  while ((which = getopt_long(argc, argv, "t:g:b:e:i:f:n:m:w:N:p:c:o:d:r:z:y:T:G:C:a:R:h", LONG, NULL)) != -1) {
    switch (which) {
    case 't': options.threads = atoi(optarg); break;
    case 'g': options.gpus = atoi(optarg); break;
    case 'b': options.min_bytes = size_of(optarg, "'minbytes'"); break;
    case 'e': options.max_bytes = size_of(optarg, "'maxbytes'"); break;
    case 'i': options.step_bytes = size_of(optarg, "'stepBytes'"); break;
    case 'f': options.factor = atoll(optarg); break;
    case 'n': options.iterations = atoi(optarg); break;
    case 'm': options.aggregated = atoi(optarg); break;
    case 'w': options.warmup = atoi(optarg); break;
    case 'c': options.check = atoi(optarg); break;
    case 'o': options.redop = optarg; break;
    case 'd': options.dtype = optarg; break;
    case 'r': options.root = atoi(optarg); break;
    case 'z': options.blocking = atoi(optarg); break;
    case 'G': options.graph = atoi(optarg); break;
    case 'N': case 'p': case 'y': case 'T': case 'C': case 'a': case 'R': break;
    default:
      if (rank == 0) printf("USAGE: %s_perf\n", NAMES[op]);
      MPI_Finalize();
      exit(which == 'h' ? EXIT_SUCCESS : EXIT_FAILURE);
    }
  }
  if (options.iterations < 1 || options.aggregated < 1 || options.warmup < 0) fail("invalid", "number of iterations");
  if (options.min_bytes > options.max_bytes) fail("invalid sizes", "minbytes above maxbytes");
  if (options.factor < 1 || (options.factor == 1 && options.step_bytes < 1)) fail("invalid", "step");
  if (options.gpus != 1 || options.threads != 1) {
    if (rank == 0)
      printf("Invalid number of GPUs: %d requested but only 1 were found.\n"
             "Please check the number of processes and GPUs per process.\n",
             options.gpus * options.threads);
    MPI_Finalize();
    exit(EXIT_FAILURE);
  }
}

static void choose(void) {
  const struct dtype dtypes[] = {
    { "int8", 1, MPI_INT8_T },     { "uint8", 1, MPI_UINT8_T },   { "int32", 4, MPI_INT32_T }, { "uint32", 4, MPI_UINT32_T },
    { "int64", 8, MPI_INT64_T },   { "uint64", 8, MPI_UINT64_T }, { "float", 4, MPI_FLOAT },   { "double", 8, MPI_DOUBLE },
  };
  for (size_t at = 0; at < sizeof dtypes / sizeof *dtypes; at++)
    if (!strcmp(dtypes[at].name, options.dtype)) dtype = dtypes[at];
  if (!dtype.name) fail("MPI has no such type", options.dtype);
  const struct {
    const char *name;
    MPI_Op op;
  } redops[] = { { "sum", MPI_SUM }, { "prod", MPI_PROD }, { "min", MPI_MIN }, { "max", MPI_MAX } };
  for (size_t at = 0; at < sizeof redops / sizeof *redops; at++)
    if (!strcmp(redops[at].name, options.redop)) redop = redops[at].op, redop_name = redops[at].name;
  if (!redop_name) fail("MPI has no such operation", options.redop);
  if (!reduces()) redop_name = "none";
  root = has_root() ? options.root : 0;
  if (root < 0 || root >= ranks) fail("no such rank", "root");
  if (op == HYPERCUBE && (ranks & (ranks - 1))) fail("not a power of two", "ranks");
}

static void head(void) {
  char step[64];
  if (options.factor > 1) snprintf(step, sizeof step, "%lld(factor)", options.factor);
  else snprintf(step, sizeof step, "%lld(bytes)", options.step_bytes);
  int *pids = malloc(sizeof(int) * (size_t)ranks), pid = (int)getpid();
  if (!pids) fail("no memory", "ranks");
  MPI_Gather(&pid, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("# nThread %d nGpus %d minBytes %lld maxBytes %lld step: %s warmup iters: %d iters: %d agg iters: %d "
           "validation: %d graph: %d\n#\n# Using devices\n",
           options.threads, options.gpus, options.min_bytes, options.max_bytes, step, options.warmup, options.iterations,
           options.aggregated, options.check, options.graph);
    for (int one = 0; one < ranks; one++) {
      int device = 0;
      for (int other = 0; other < one; other++) device += !strcmp(hosts[other], hosts[one]);
      printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [0x%02x] %s\n", one, 0, pids[one], hosts[one], device, device,
             "host memory by MPI");
    }
    printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n", "size", "count", "type", "redop", "root",
           "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s\n", "(B)", "(elements)", "", "", "", "(us)",
           "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
  }
  free(pids);
}

int main(int argc, char **argv) {
  const char *name = strrchr(argv[0], '/');
  name = name ? name + 1 : argv[0];
  char program[64];
  for (op = 0; op < OPS; op++) {
    snprintf(program, sizeof program, "%s_perf", NAMES[op]);
    if (!strcmp(program, name)) break;
  }
  if (op == OPS) {
    fprintf(stderr, "%s: call it by the name of a program of nccl-tests\n", name);
    return EXIT_FAILURE;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  /* Each row is there once it has been measured, also where output goes to a file. */
  setvbuf(stdout, NULL, _IOLBF, 0);
  read_options(argc, argv);
  choose();
  char own[256] = "";
  gethostname(own, sizeof own - 1);
  own[strcspn(own, ".")] = '\0';
  hosts = calloc((size_t)ranks, sizeof *hosts);
  struct counts most = counts_of((size_t)options.max_bytes);
  size_t room = (most.send > most.recv ? most.send : most.recv) * dtype.bytes + 8;
  char *send = malloc(room), *recv = malloc(room);
  if (!hosts || !send || !recv) {
    fprintf(stderr, "%s: no memory for %zu bytes\n", name, room);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    return EXIT_FAILURE;
  }
  MPI_Allgather(own, sizeof own, MPI_CHAR, hosts, sizeof own, MPI_CHAR, MPI_COMM_WORLD);
  head();
  fill(send, recv, most, 0);
  if (options.warmup > 0) timed(send, recv, most, 0, options.warmup);
  double sum = 0;
  long long wrong = 0, halves = 0;
  char of_root[16];
  snprintf(of_root, sizeof of_root, "%d", has_root() ? root : -1);
  for (long long size = options.min_bytes; size <= options.max_bytes;
       size = options.factor > 1 ? (size ? size * options.factor : 1) : size + options.step_bytes) {
    struct counts counts = counts_of((size_t)size);
    size_t shown = (counts.send > counts.recv ? counts.send : counts.recv) * dtype.bytes;
    if (rank == 0)
      printf("%12zu  %12zu  %8s  %6s  %6s", shown, counts.part, dtype.name, redop_name, of_root);
    for (int in_place = 0; in_place < 2; in_place++, halves++) {
      fill(send, recv, counts, in_place);
      sum += half(send, recv, counts, in_place, &wrong);
    }
    if (rank == 0) printf("\n");
  }
  if (rank == 0)
    printf("# Out of bounds values : %lld %s\n# Avg bus bandwidth    : %g \n#\n\n", wrong, wrong ? "FAILED" : "OK",
           halves ? sum / (double)halves : 0);
  free(send);
  free(recv);
  free(hosts);
  MPI_Finalize();
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
