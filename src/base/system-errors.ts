/** Whether the operating system reported the error; if codes are given, with one of these, such as `ENOENT`. */
export function isSystemError(
  error: unknown,
  ...codes: readonly string[]
): error is NodeJS.ErrnoException {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) return false;
  return codes.length === 0 || codes.includes(String(error.code));
}

export const FULL_DISK = 'The disk is full: free space, or write elsewhere.';

/** Returns the remedy for a failed write: `otherwise`, unless the error has a more specific one. */
export function writeRemedy(error: unknown, otherwise: string): string {
  if (isSystemError(error, 'ENOSPC')) return FULL_DISK;
  if (isSystemError(error, 'EDQUOT'))
    return 'The quota is used up: free space, or write elsewhere.';
  if (isSystemError(error, 'EROFS')) return 'The file system is read-only: write elsewhere.';
  return otherwise;
}
