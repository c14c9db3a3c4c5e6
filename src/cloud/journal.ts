import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { writePrivateFile } from '../client/private-file.ts';
import { isSystemError } from '../errors.ts';
import { isId } from '../lease/claims.ts';

/**
 * Remembers, over the end of the process, under which id a lease is asked for: the server gives
 * none twice under the same one, so that a request that is sent again does not make two leases, and
 * one that was issued and never arrived is told. No lease is in it.
 */
export interface Journal {
  /** That of the run that was broken off, or a new one; it is on disk when this returns. */
  issueId(): Promise<string>;
  /** Takes the next one, or ends what was begun. */
  forget(): Promise<void>;
}

export function journalAt(path: string): Journal {
  return {
    async issueId() {
      const begun = await read(path);
      if (begun !== undefined) return begun;
      const issue_id = randomUUID();
      await writePrivateFile(path, `${JSON.stringify({ issue_id })}\n`);
      return issue_id;
    },
    forget: () => rm(path, { force: true }),
  };
}

async function read(path: string): Promise<string | undefined> {
  try {
    const { issue_id } = JSON.parse(await readFile(path, 'utf8')) as { issue_id?: unknown };
    return isId(issue_id) ? (issue_id as string) : undefined;
  } catch (error) {
    // A torn file is as good as none.
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
