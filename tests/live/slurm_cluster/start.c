/*
 * Starts a program of another root: the words of the command lie beside this executable, in `NAME.words`, each ended by a
 * NUL byte, and the caller's arguments come behind them. No script can stand here: slurmctld starts itself over again by
 * an open file, which the kernel does not do for scripts.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char path[PATH_MAX + 8], text[65536], *words[1024];
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  if (length < 0) return 127;
  strcpy(path + length, ".words");
  FILE *file = fopen(path, "r");
  size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0, many = 0;
  for (size_t at = 0; at < bytes && many < 64; at += strlen(text + at) + 1) words[many++] = text + at;
  if (many == 0 || many + (size_t)argc > 1024) {
    fprintf(stderr, "%s: no command, or too many arguments\n", path);
    return 127;
  }
  for (int at = 1; at < argc; at++) words[many++] = argv[at];
  words[many] = NULL;
  if (file) fclose(file);
  execv(words[0], words);
  perror(words[0]);
  return 127;
}
