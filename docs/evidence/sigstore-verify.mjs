// Checks the signature in a sealed file with npm's @sigstore/verify, which shares no code with Firsthand.
//
//   npm install @sigstore/verify
//   node sigstore-verify.mjs result.json key.pub.pem
//
// Exit 0: the key signed the envelope, and its statement names the digest of exactly the stored bytes. Else exit 1.
// It says nothing on whether the evidence keeps the rules: that is `firsthand verify`.
import { createHash, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.cwd(), "node_modules", "here.js"));
const { toSignedEntity, Verifier } = require("@sigstore/verify");
const { bundleFromJSON } = require("@sigstore/bundle");

const [file, keyFile] = process.argv.slice(2);
const raw = readFileSync(file);
const publicKey = createPublicKey(readFileSync(keyFile));
const { envelope } = JSON.parse(raw.toString("utf8"));

const bundle = bundleFromJSON({
  mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
  verificationMaterial: { publicKey: { hint: envelope.signatures[0].keyid }, tlogEntries: [] },
  dsseEnvelope: envelope,
});
// A key of ours: no certificates, no transparency log, no time stamps.
const trust = { publicKey: () => ({ publicKey, validFor: () => true }) };
const options = { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 };
try {
  new Verifier(trust, options).verify(toSignedEntity(bundle));
  const start = raw.indexOf('"evidence":') + '"evidence":'.length;
  const stored = raw.subarray(start, raw.lastIndexOf(',"schema":'));
  const { predicate } = JSON.parse(Buffer.from(envelope.payload, "base64").toString("utf8"));
  const digest = createHash("sha256").update(stored).digest("hex");
  if (predicate.evidence.sha256 !== digest) throw new Error("the statement names another digest");
  console.log(`verified: ${digest}`);
} catch (error) {
  console.error(`refused: ${error.message}`);
  process.exitCode = 1;
}
