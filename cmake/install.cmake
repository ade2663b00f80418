# `cmake --install` and the .deb: the program, its manual, completion and unit.
include(GNUInstallDirs)
install(TARGETS cudabpf RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
