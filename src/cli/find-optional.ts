import { ServiceError } from '../base/errors.ts';

/** Converts `not_found` to undefined. */
export async function findOptional<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return undefined;
    throw error;
  }
}
