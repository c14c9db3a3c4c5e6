import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { BREAK, BREAKS } from './breaks.ts';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

test.for(BREAKS)('one of 100 days finds that $name', async ({ name }) => {
  const simulation = spawn(
    process.execPath,
    ['--import', path('breaks.ts'), path('../simulate-day.ts'), '1', '100'],
    { env: { ...process.env, [BREAK]: name } },
  );
  const errors = text(simulation.stderr);
  let output = '';
  for await (const part of simulation.stdout) {
    output += String(part);
    if (output.includes('seed ')) break;
  }
  simulation.kill();
  expect(output, await errors).toMatch(/^seed \d+ at /);
});
