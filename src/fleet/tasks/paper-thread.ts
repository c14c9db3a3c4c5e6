/** Thread for paper sessions. */
import { serveSessions } from '../../trading/host/threads/session-thread.ts';
import { writePaperResult } from './paper-result.ts';

serveSessions(writePaperResult);
