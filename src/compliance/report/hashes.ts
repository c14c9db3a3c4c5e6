import { digest } from '../evidence-digest.ts';
import { figuresIn } from './report-fields.ts';
import type { Report } from './validation-report.ts';

/** Sets `inputs_hash` and `content_hash` from the other fields. */
export function withHashes(report: Report): Report {
  const inputs_hash = digest(figuresIn(report).map(([, { hash }]) => hash));
  const whole = { ...report, generated_by: { ...report.generated_by, inputs_hash } };
  return { ...whole, content_hash: contentHash(whole) };
}

/** Hashes what people attest: all of a report except what freezing and attesting add. */
function contentHash({
  status: _status,
  signed_with_open: _open,
  number: _number,
  content_hash: _hash,
  attestations: { internal_audit_absent_reason },
  ...content
}: Report): string {
  return digest({ ...content, internal_audit_absent_reason });
}
