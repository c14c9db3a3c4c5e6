import { newAnnouncement } from '../src/gate/anchor.ts';
import { readState, writeState } from './daemon-state.ts';

/**
 * Announces a trust anchor that a person is about to put in place, so that running programs accept
 * it even where their own trust does not vouch for it. The caller holds the lock of the license files.
 *
 * @param path of the daemon's state.
 * @param anchor the content of the anchor file.
 * @throws ServiceError as `writePrivateFile`
 */
export async function announceAnchor(path: string, anchor: string): Promise<void> {
  const state = await readState(path);
  await writeState(path, { ...state, announced_anchor: newAnnouncement(anchor) });
}
