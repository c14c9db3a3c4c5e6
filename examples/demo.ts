/**
 * `npm run demo`: makes a bot out of an example and backtests it, with the same commands that one
 * would type.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const bot = 'runs/demo';

mkdirSync(join(root, bot, 'data'), { recursive: true });
for (const file of ['sma-crossover.yaml', 'data/sp500-daily.csv']) {
  cpSync(join(root, 'examples', file), join(root, bot, file));
}
console.log(`A bot from examples/ in ${bot}/\n`);

for (const command of [
  `validate ${bot}/sma-crossover.yaml`,
  `backtest ${bot}/sma-crossover.yaml --out ${bot}/result`,
]) {
  console.log(`$ npx service-local ${command}\n`);
  const { status } = spawnSync(
    process.execPath,
    [join(root, 'dist/bin/service-local.js'), ...command.split(' ')],
    { cwd: root, stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
  console.log();
}
