import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { formatTime } from '../../src/lease/time.ts';
import { KEY, keysetOf, leaseOf, newLicensePlace } from '../gate/license-place.ts';
import { figure, median, round, type Figure } from './figure.ts';
import { measure } from './issuance.ts';
import type { Measured } from './load.ts';

const CONNECTIONS = 64;
/** V8 does not compile alike in each process. */
const PROCESSES = 3;
/** Short ones in turn: what else the machine does must meet both routes alike. */
const ROUNDS = 8;
const ROUND = { warmUpMs: 200, measureMs: 1000 };
const WARM_UP = { warmUpMs: 1500, measureMs: 100 };

const CHECKS = 5_000_000;

/** What it costs to ask for the license: of a route over HTTP, and of the bare question. */
export async function gate(): Promise<Figure[]> {
  return [await gatedRoute(), await check()];
}

async function gatedRoute(): Promise<Figure> {
  const rates: Record<'/open' | '/gated', number[]> = { '/open': [], '/gated': [] };
  const ratios: number[] = [];
  const callers = Array.from({ length: CONNECTIONS }, () => ({
    authorization: 'none',
    body: '{}',
  }));
  for (let i = 0; i < PROCESSES; i += 1) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'gated-server.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'close');
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const target = { url: line.toString().trim(), callers };
      const rate = async (path: '/open' | '/gated'): Promise<Measured> => {
        const measured = await measure({ ...target, path, ...ROUND });
        rates[path].push(measured.perSecond);
        return measured;
      };
      for (const path of ['/open', '/gated']) await measure({ ...target, path, ...WARM_UP });
      for (let k = 0; k < ROUNDS; k += 1) {
        // Each of the two is now the first, now the second.
        const [first, second] = [
          await rate(k % 2 ? '/gated' : '/open'),
          await rate(k % 2 ? '/open' : '/gated'),
        ];
        const ratio = second.perSecond / first.perSecond;
        ratios.push(k % 2 ? 1 / ratio : ratio);
      }
    } finally {
      child.kill();
      await ended;
    }
  }
  const typical = (path: '/open' | '/gated'): string => `${round(median(rates[path]))} /s`;
  return figure('gated route', [typical('/open'), typical('/gated')], median(ratios), {
    atLeast: 0.97,
  });
}

async function check(): Promise<Figure> {
  const place = newLicensePlace();
  try {
    place.put(place.files.keyset, keysetOf(KEY));
    place.put(place.files.lease, leaseOf('1', 0, { issued_at: formatTime(Date.now()) }));
    const opened = await place.open({ clock: Date.now });
    const times: number[] = [];
    for (let k = 0; k < 5; k += 1) {
      let allowed = 0;
      const begin = performance.now();
      for (let i = 0; i < CHECKS; i += 1) if (opened.check('live_trading').allowed) allowed += 1;
      times.push(((performance.now() - begin) / CHECKS) * 1e6);
      if (allowed !== CHECKS) throw new Error('the license is not good');
    }
    const ns = median(times);
    return figure('one check of the gate', ['1000 ns', `${round(ns)} ns`], ns / 1000, {
      atMost: 1,
    });
  } finally {
    await place.remove();
  }
}
