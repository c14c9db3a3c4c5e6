/** The CLI with test verbs for rare cases. Run it like the real program. */
import { run } from '../../src/cli/main.ts';
import { SAMPLE_VERBS } from './sample-verbs.ts';

process.exitCode = await run(process.argv.slice(2), process, SAMPLE_VERBS);
