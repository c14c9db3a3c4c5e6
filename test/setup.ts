/**
 * Vitest runs this file before each test file that is not in `REAL_CRYPTOGRAPHY`. Node caches the import,
 * so that test files that share a process replace the functions only once.
 */
await import('./cheap-cryptography.ts');
