/**
 * Vitest loads this file before each test file that `REAL_CRYPTOGRAPHY` does not name. Of the files of
 * one process, the first loads what is imported here.
 */
await import('./cheap-cryptography.ts');
