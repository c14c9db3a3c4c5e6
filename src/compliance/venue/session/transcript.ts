import { createHash } from 'node:crypto';
import type { SimulatedVenue, VenueLine } from './simulated-venue.ts';

/** All that a venue heard, said and did since it was begun, as evidence. */
export interface Transcript {
  readonly lines: readonly VenueLine[];
  /** SHA-256, in hex, of the lines as JSON, each ended by a newline. */
  hash(): string;
}

/** To be begun before anything happens: lines are kept from now on. */
export function beginTranscript(venue: SimulatedVenue): Transcript {
  const lines: VenueLine[] = [];
  // As text at once: a message may be kept by others, and be numbered later.
  const hash = createHash('sha256');
  venue.listen((line) => {
    lines.push(line);
    hash.update(`${JSON.stringify(line)}\n`);
  });
  return { lines, hash: () => hash.copy().digest('hex') };
}
