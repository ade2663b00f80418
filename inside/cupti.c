/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds libcupti: the one that the process has loaded, for there must not be two; else one that
 * belongs to the CUDA that the process uses; else the machine's.
 */
#include "cupti.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

OLD_VERSION(dlopen);
OLD_VERSION(dlsym);
OLD_VERSION(dlclose);
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3"); /* its first, and newer than the others' */

#define CUPTI "CUDABPF_CUPTI" /* its path, if it is not where it is looked for */
#define MAX_PATH 4096

struct cupti ci_cupti;

static const char* const FILES[] = {"libcupti.so.13", "libcupti.so.12"};

/* Relative to a folder with libraries of CUDA: in the toolkit, and in Python's wheels. */
static const char* const BESIDE[] = {"", "../extras/CUPTI/lib64/", "../../../extras/CUPTI/lib64/",
                                     "../../cuda_cupti/lib/"};
static const char* const FOLDERS[] = {"/usr/local/cuda/lib64/",
                                      "/usr/local/cuda/extras/CUPTI/lib64/", "/opt/cuda/lib64/",
                                      "/opt/cuda/extras/CUPTI/lib64/"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* False: the whole is too long. */
static bool join(char to[MAX_PATH], const char* folder, size_t length, const char* more,
                 const char* file) {
  size_t parts[] = {length, strlen(more), strlen(file)};
  if (parts[0] + parts[1] + parts[2] >= MAX_PATH) return false;
  const char* texts[] = {folder, more, file};
  char* at = to;
  for (int i = 0; i < 3; i++) {
    memcpy(at, texts[i], parts[i]);
    at += parts[i];
  }
  *at = 0;
  return true;
}

static void* open_in(const char* folder, size_t length, const char* more) {
  char path[MAX_PATH];
  for (size_t i = 0; i < COUNT(FILES); i++) {
    void* library = join(path, folder, length, more, FILES[i]) ? dlopen(path, RTLD_NOW) : NULL;
    if (library) return library;
  }
  return NULL;
}

static const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int is_cupti(struct dl_phdr_info* info, size_t size, void* of) {
  (void)size;
  if (strncmp(base_name(info->dlpi_name), "libcupti.so", strlen("libcupti.so")) != 0) return 0;
  *(const char**)of = info->dlpi_name;
  return 1;
}

/* Folders with libraries of CUDA that the process has loaded. They are only noted here: nothing may
 * be loaded while the linker goes through its list. */
struct folders {
  char paths[4][MAX_PATH];
  size_t count;
};

static int note_folder(struct dl_phdr_info* info, size_t size, void* of) {
  (void)size;
  static const char* const LIBRARIES[] = {"libcudart.so", "libcublas", "libnvrtc.so", "libcudnn"};
  struct folders* folders = of;
  const char* path = info->dlpi_name;
  const char* name = base_name(path);
  size_t length = (size_t)(name - path);
  for (size_t i = 0; i < COUNT(LIBRARIES); i++) {
    if (strncmp(name, LIBRARIES[i], strlen(LIBRARIES[i])) != 0) continue;
    if (folders->count < COUNT(folders->paths) && length < MAX_PATH) {
      memcpy(folders->paths[folders->count], path, length);
      folders->paths[folders->count++][length] = 0;
    }
  }
  return 0;
}

static void* open_cupti(const char** why) {
  const char* named = getenv(CUPTI);
  if (named && *named) {
    void* library = dlopen(named, RTLD_NOW);
    if (!library) *why = "the library that " CUPTI " names could not be loaded";
    return library;
  }
  const char* mapped = NULL;
  if (dl_iterate_phdr(is_cupti, &mapped)) return dlopen(mapped, RTLD_NOW | RTLD_NOLOAD);
  struct folders* folders = calloc(1, sizeof(*folders));
  if (folders) dl_iterate_phdr(note_folder, folders);
  void* library = NULL;
  for (size_t i = 0; folders && i < folders->count; i++)
    for (size_t j = 0; !library && j < COUNT(BESIDE); j++)
      library = open_in(folders->paths[i], strlen(folders->paths[i]), BESIDE[j]);
  free(folders);
  if (!library) library = open_in("", 0, "");
  for (size_t i = 0; !library && i < COUNT(FOLDERS); i++)
    library = open_in(FOLDERS[i], strlen(FOLDERS[i]), "");
  if (!library)
    *why =
        "there is no libcupti.so.13 or libcupti.so.12 beside the process's CUDA libraries, on the "
        "linker's "
        "paths or in /usr/local/cuda. It comes with the CUDA toolkit, and as `pip install "
        "nvidia-cuda-cupti`; " CUPTI " can name its path";
  return library;
}

bool ci_load_cupti(const char** why) {
  void* library = open_cupti(why);
  if (!library) return false;
#define FIND(name, parameters) *(void**)&ci_cupti.name = dlsym(library, "cupti" #name);
  CUPTI_FUNCTIONS(FIND)
#undef FIND
  bool whole = true;
#define IS_THERE(name, parameters) whole &= ci_cupti.name != NULL;
  CUPTI_FUNCTIONS(IS_THERE)
#undef IS_THERE
  struct link_map* map = NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map &&
      strlen(map->l_name) < sizeof(ci_cupti.path))
    strcpy(ci_cupti.path, map->l_name);
  if (whole) return true;
  *why = "this libcupti lacks some of its functions";
  dlclose(library);
  return false;
}
