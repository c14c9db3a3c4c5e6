/** A route that requires a license against the same route without this requirement. */
import { startScript, timePerRequest } from './http.ts';
import { alternate, peakMemory, printMeasurement, type Pair } from './measurement.ts';

const CONNECTIONS = 64;
/** V8 compiles differently in each process. */
const PROCESSES = 3;
/** Many short rounds, because the difference is small. */
const ROUNDS = 8;
const ROUND = { warmUpMs: 200, measureMs: 1000 };
const WARM_UP = { warmUpMs: 1500, measureMs: 100 };

const request = { authorization: 'none', body: '{}' };
const requests = Array.from({ length: CONNECTIONS }, () => request);
const pairs: Pair[] = [];
const peaks: number[] = [];
for (let i = 0; i < PROCESSES; i += 1) {
  const server = await startScript('gated-server.ts');
  try {
    const open = { url: server.url, path: '/open', requests };
    const gated = { ...open, path: '/gated' };
    for (const target of [open, gated]) await timePerRequest({ ...target, ...WARM_UP });
    const sides = {
      floor: () => timePerRequest({ ...open, ...ROUND }),
      ours: () => timePerRequest({ ...gated, ...ROUND }),
    };
    pairs.push(...(await alternate(ROUNDS, sides)));
    peaks.push(peakMemory(server.pid));
  } finally {
    await server.stop();
  }
}
printMeasurement({ pairs, peakBytes: Math.max(...peaks) });
