import type { Services } from '../../src/server/services.ts';

/** A gate that allows everything. */
export const OPEN_GATE: Services['gate'] = {
  check: () => ({ allowed: true, status: 'not_enforced' }),
};
