/* Reads tables of lines and texts as the library does for a Python frame. Each line of standard
 * input is one: what is read lies in front of a page that may not be touched.
 *
 *   lines FIRST INSTRUCTIONS HEX   the line of each instruction; 0: none
 *   text WIDTH MOST HEX            the text as UTF-8, in hexadecimal, and whether it is cut
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cudabpf/python_text.h"

#define ROOM (64u << 10)

static unsigned char* end_of_room(void) {
  unsigned char* room =
      mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE) != 0) exit(1);
  return room + ROOM;
}

static unsigned char* bytes_of(const char* hex, unsigned long* size) {
  static unsigned char* end;
  if (!end) end = end_of_room();
  *size = strlen(hex) / 2;
  if (*size > ROOM) exit(1);
  for (unsigned long i = 0; i < *size; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) exit(1);
    end[(long)i - (long)*size] = (unsigned char)byte;
  }
  return end - *size;
}

int main(void) {
  static char line[2 * ROOM + 256], hex[2 * ROOM + 1];
  unsigned first, second;
  while (fgets(line, sizeof(line), stdin)) {
    unsigned long size;
    hex[0] = 0;
    if (sscanf(line, "lines %u %u %131072s", &first, &second, hex) >= 2) {
      const unsigned char* table = bytes_of(hex, &size);
      for (unsigned i = 0; i < second; i++)
        printf("%u ", cb_python_line(table, size, first, i * 2));
      printf("\n");
    } else if (sscanf(line, "text %u %u %131072s", &first, &second, hex) >= 2) {
      const unsigned char* text = bytes_of(hex, &size);
      char to[ROOM];
      bool cut = false;
      struct cb_python_text said = {text, size / first, (__u8)first};
      __u32 written = cb_put_python_text(to, said, second, &cut);
      for (__u32 i = 0; i < written; i++) printf("%02x", (unsigned char)to[i]);
      printf(" %d\n", cut);
    } else {
      return 1;
    }
  }
  return 0;
}
