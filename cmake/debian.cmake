# What Debian asks of a package beyond what is installed: cpack runs this on the tree that it packs.
set(SHARE ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(DOC ${SHARE}/doc/${CPACK_PACKAGE_NAME})
file(REMOVE ${DOC}/LICENSE ${DOC}/LICENSE-BPF) # their text is in `copyright`
file(WRITE ${DOC}/changelog
     "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
     "  * What changed stands in CHANGELOG.md beside this file.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
execute_process(COMMAND gzip -9 --no-name ${DOC}/changelog ${SHARE}/man/man1/cudabpf.1
                COMMAND_ERROR_IS_FATAL ANY)
