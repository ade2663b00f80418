# `cmake --install` and the .deb: the program, its library, manual, completion, unit and documents.
include(GNUInstallDirs)

# Builds what is installed, and nothing else. `test/scripts/installed.py` holds it against what is installed.
add_custom_target(installed DEPENDS cudabpf)
set(BUILT $<TARGET_FILE:cudabpf>)
if(TARGET cudabpf-inside)
  add_dependencies(cudabpf cudabpf-inside) # which looks for it at its side
  list(APPEND BUILT $<TARGET_FILE:cudabpf-inside>)
endif()
# Before anything is installed: half an installation is worse than none.
install(CODE "
  foreach(file IN ITEMS ${BUILT})
    if(NOT EXISTS \"\${file}\")
      message(FATAL_ERROR \"\${file} is not built yet. This builds all that is installed:\n\"
                          \"  cmake --build ${CMAKE_BINARY_DIR} --target installed\")
    endif()
  endforeach()
  # `sudo cmake --install` leaves a list that is root's, and cpack would fail to write its own there.
  file(REMOVE \"${CMAKE_BINARY_DIR}/install_manifest.txt\")")

install(TARGETS cudabpf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET cudabpf-inside)
  install(TARGETS cudabpf-inside LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/cudabpf)
endif()
install(FILES packaging/cudabpf.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES packaging/cudabpf.service packaging/cudabpf-metrics.service DESTINATION lib/systemd/system)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE LICENSE-BPF packaging/copyright
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY packaging/prometheus packaging/grafana packaging/kubernetes
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/packaging)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
# What the examples of --help read.
install(DIRECTORY traces DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "h200-*.zst" PATTERN "example-*.zst" PATTERN "README.md")
# The unit reads its options from /etc/default, which belongs to packages, and has some of its own.
install(CODE "
  if(CMAKE_INSTALL_PREFIX MATCHES /usr/?$)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/../etc/default\" TYPE FILE RENAME cudabpf
         FILES \"${CMAKE_SOURCE_DIR}/packaging/cudabpf.default\")
  endif()")
set(COMPLETION ${CMAKE_SOURCE_DIR}/packaging/completion)
install(FILES ${COMPLETION}/cudabpf.bash RENAME cudabpf
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${COMPLETION}/cudabpf.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# Below /usr zsh looks in another folder than below /usr/local, and which it is, is known when it is
# installed: a package is made by installing below FOLDER/usr.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX MATCHES /usr/?$)
    set(folder vendor-completions)
  endif()
  file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\"
       TYPE FILE RENAME _cudabpf FILES \"${COMPLETION}/cudabpf.zsh\")")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cudabpf)
set(CPACK_PACKAGE_CONTACT "cudabpf maintainers <maintainers@cudabpf.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trace every CUDA driver call from the kernel, with eBPF")
set(CPACK_PACKAGE_DESCRIPTION
    "cudabpf records the CUDA driver calls of a command, of running processes or
of the whole machine as JSON lines. Programs are neither changed nor
restarted: the probes are eBPF programs on the functions of libcuda.so. It
needs Linux 5.15 or later with BTF, and root. Without root, the calls of a
command are recorded from inside it, by a library that libcuda loads.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/conffiles)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian.cmake)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "jq, less, zstd")
include(CPack)
