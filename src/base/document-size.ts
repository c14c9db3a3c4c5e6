/** That a document of the knowledge may have, in UTF-8. */
export const MAX_DOCUMENT_BYTES = 5 * 1024 * 1024;
