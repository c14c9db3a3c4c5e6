/** Maximum size of a knowledge document in UTF-8. */
export const MAX_DOCUMENT_BYTES = 5 * 1024 * 1024;
