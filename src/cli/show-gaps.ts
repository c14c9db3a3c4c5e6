import { formatCount } from '../base/format.ts';
import { formatTime } from '../market/bar-time.ts';
import type { GapReport } from '../market/data-gaps.ts';
import type { Output } from './output.ts';

const GAPS_SHOWN = 10;

/** Returns a report of missing bars as printed by `--json`. */
export function gapsDocument({ gaps, count, missing, shortHoles }: GapReport) {
  const listed = gaps.map((gap) => ({
    after: formatTime(gap.after),
    before: formatTime(gap.before),
    missing: gap.missing,
  }));
  return { count, missing, short_holes: shortHoles, listed };
}

/** Prints it for a person. */
export function showGaps(out: Output, { count, missing, short_holes, listed }: GapsDocument): void {
  if (short_holes > 0) out.line(`gaps that are probably holidays: ${formatCount(short_holes)}`);
  if (count === 0) return;
  out.line(`missing bars: ${formatCount(missing)}, in gaps: ${formatCount(count)}`);
  out.table(
    [{ title: 'after' }, { title: 'before' }, { title: 'missing', align: 'right' }],
    listed.slice(0, GAPS_SHOWN).map((gap) => [gap.after, gap.before, formatCount(gap.missing)]),
  );
  if (count > GAPS_SHOWN) out.line(`… and ${formatCount(count - GAPS_SHOWN)} more`);
}

type GapsDocument = ReturnType<typeof gapsDocument>;
