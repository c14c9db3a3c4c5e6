import type { MachineTrust } from './machine-trust.ts';

/**
 * Describes to users why keys are trusted.
 *
 * @param place where unpinned keys come from.
 */
export function describeTrust(
  { by, pin, fingerprint }: Pick<MachineTrust, 'by' | 'pin' | 'fingerprint'>,
  place: 'file' | 'secret' = 'file',
): string {
  if (by === 'pin') return `the keys descend from the pinned root ${pin}`;
  if (by === 'held') {
    const root = fingerprint === undefined ? 'without a root' : `root ${fingerprint}`;
    return `this machine accepted the keys before (${root})`;
  }
  const root =
    fingerprint === undefined
      ? 'and no root signs them'
      : `and they are signed by the root ${fingerprint}`;
  return `unpinned: the keys are trusted because they are in the ${place}, ${root}`;
}
