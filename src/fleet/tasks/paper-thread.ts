/** Thread for paper sessions. */
import { parentPort } from 'node:worker_threads';
import { serveSessions } from '../../trading/host/threads/session-thread.ts';
import { writePaperResult } from './paper-result.ts';

serveSessions(parentPort!, writePaperResult);
