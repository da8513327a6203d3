//! Requests for certificates, read as Go's `crypto/x509` reads them and refused in its words.

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use super::{curve, pem};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const NULL: &[u8] = &[0x05, 0x00];
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0]`: the attributes of a request.
const ATTRIBUTES: u8 = 0xa0;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// What is wrong with a request in PEM.
pub(crate) fn fault(request: &[u8]) -> Option<String> {
    match der(request) {
        Some(der) => read(&der).err(),
        None => Some("PEM block type must be CERTIFICATE REQUEST".to_owned()),
    }
}

/// The request in a PEM.
pub(crate) fn der(request: &[u8]) -> Option<Vec<u8>> {
    pem::first(request).filter(|(kind, _)| *kind == b"CERTIFICATE REQUEST").map(|(_, der)| der)
}

fn read(der: &[u8]) -> Result<(), String> {
    let mut outer = Reader::new(der);
    let request = outer.take(SEQUENCE, "certificateRequest")?;
    let mut request = Reader::new(request.content);
    let signed = request.take(SEQUENCE, "tbsCertificateRequest")?;
    let mut inner = Reader::new(signed.content);
    if inner.take(INTEGER, "int")?.content.is_empty() {
        return Err("asn1: structure error: empty integer".to_owned());
    }
    inner.any()?;
    let mut key = Reader::new(inner.take(SEQUENCE, "publicKeyInfo")?.content);
    let algorithm = Algorithm::read(&mut key)?;
    let key = key.bits()?;
    inner.take(ATTRIBUTES, "")?;
    let signed_by = Algorithm::read(&mut request)?;
    let signature = request.bits()?;
    if !outer.rest.is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    key_fault(&algorithm, key).map_or(Ok(()), Err)?;
    let verified = verify(&algorithm, key, &signed_by, signed.whole, signature);
    verified.map_or(Ok(()), |why| Err(why.to_owned()))
}

fn key_fault(algorithm: &Algorithm<'_>, key: &[u8]) -> Option<String> {
    match algorithm.oid {
        RSA if algorithm.parameters != NULL => Some("x509: RSA key missing NULL parameters".to_owned()),
        ECDSA => {
            let mut parameters = Reader::new(algorithm.parameters);
            match parameters.take(OBJECT_IDENTIFIER, "") {
                Ok(oid) => curve::fault(oid.content, key),
                Err(_) => Some("x509: invalid ECDSA parameters".to_owned()),
            }
        }
        ED25519 if !algorithm.parameters.is_empty() => {
            Some("x509: Ed25519 key encoded with illegal parameters".to_owned())
        }
        ED25519 if key.len() != 32 => Some("x509: wrong Ed25519 public key size".to_owned()),
        _ => None,
    }
}

/// What is wrong with the signature. Of pairs of keys and signatures that `ring` does not know, nothing is said.
fn verify(
    algorithm: &Algorithm<'_>,
    key: &[u8],
    signed_by: &Algorithm<'_>,
    signed: &[u8],
    signature: &[u8],
) -> Option<&'static str> {
    let (check, fault): (&'static dyn VerificationAlgorithm, &'static str) =
        match (algorithm.oid, signed_by.oid, key.len()) {
            (RSA, [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, hash], _) => {
                let check: &'static dyn VerificationAlgorithm = match hash {
                    0x0b => &signature::RSA_PKCS1_2048_8192_SHA256,
                    0x0c => &signature::RSA_PKCS1_2048_8192_SHA384,
                    0x0d => &signature::RSA_PKCS1_2048_8192_SHA512,
                    _ => return None,
                };
                (check, "crypto/rsa: verification error")
            }
            (ECDSA, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, hash], length) => {
                let check: &'static dyn VerificationAlgorithm = match (length, hash) {
                    (65, 0x02) => &signature::ECDSA_P256_SHA256_ASN1,
                    (65, 0x03) => &signature::ECDSA_P256_SHA384_ASN1,
                    (97, 0x02) => &signature::ECDSA_P384_SHA256_ASN1,
                    (97, 0x03) => &signature::ECDSA_P384_SHA384_ASN1,
                    _ => return None,
                };
                (check, "x509: ECDSA verification failure")
            }
            (ED25519, ED25519, _) => (&signature::ED25519, "x509: Ed25519 verification failure"),
            _ => return None,
        };
    let verified = UnparsedPublicKey::new(check, key).verify(signed, signature);
    verified.err().map(|_| fault)
}

struct Algorithm<'a> {
    oid: &'a [u8],
    /// What follows, with its tag; empty where nothing does.
    parameters: &'a [u8],
}

impl<'a> Algorithm<'a> {
    fn read(from: &mut Reader<'a>) -> Result<Algorithm<'a>, String> {
        let mut inner = Reader::new(from.take(SEQUENCE, "AlgorithmIdentifier")?.content);
        let oid = inner.take(OBJECT_IDENTIFIER, "ObjectIdentifier")?.content;
        if oid.is_empty() {
            return Err("asn1: syntax error: zero length OBJECT IDENTIFIER".to_owned());
        }
        let parameters = if inner.rest.is_empty() { &[][..] } else { inner.any()? };
        Ok(Algorithm { oid, parameters })
    }
}

/// An element with and without its head.
struct Element<'a> {
    whole: &'a [u8],
    content: &'a [u8],
}

/// Reads DER as Go's `encoding/asn1` does.
struct Reader<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(all: &'a [u8]) -> Reader<'a> {
        Reader { all, rest: all }
    }

    /// The next element, of this tag; `name` is what Go calls its type.
    fn take(&mut self, tag: u8, name: &str) -> Result<Element<'a>, String> {
        let (found, head, length) = self.head()?;
        if found != tag {
            let (class, number, compound) = (found >> 6, found & 0x1f, found & 0x20 != 0);
            let at = self.all.len() - self.rest.len() + head;
            return Err(format!(
                "asn1: structure error: tags don't match ({} vs {{class:{class} tag:{number} length:{length} \
                 isCompound:{compound}}}) {{optional:false explicit:false application:false private:false \
                 defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} {name} @{at}",
                tag & 0x1f,
            ));
        }
        self.cut(head, length)
    }

    /// The next element, whatever it is, with its head.
    fn any(&mut self) -> Result<&'a [u8], String> {
        let (_, head, length) = self.head()?;
        Ok(self.cut(head, length)?.whole)
    }

    fn bits(&mut self) -> Result<&'a [u8], String> {
        match self.take(BIT_STRING, "BitString")?.content {
            [] => Err("asn1: syntax error: zero length BIT STRING".to_owned()),
            [0, bits @ ..] => Ok(bits),
            _ => Err("asn1: syntax error: invalid padding bits in BIT STRING".to_owned()),
        }
    }

    fn cut(&mut self, head: usize, length: usize) -> Result<Element<'a>, String> {
        let cut = self.rest.split_at_checked(head + length);
        let (whole, rest) = cut.ok_or("asn1: syntax error: data truncated")?;
        self.rest = rest;
        Ok(Element { whole, content: &whole[head..] })
    }

    /// The tag of the next element, how long its head is, and its content.
    fn head(&self) -> Result<(u8, usize, usize), &'static str> {
        let (tag, first) = match *self.rest {
            [] => return Err("asn1: syntax error: sequence truncated"),
            [_] => return Err("asn1: syntax error: truncated tag or length"),
            [tag, first, ..] => (tag, first),
        };
        if first & 0x80 == 0 {
            return Ok((tag, 2, usize::from(first)));
        }
        let digits = usize::from(first & 0x7f);
        if digits == 0 {
            return Err("asn1: syntax error: indefinite length found (not DER)");
        }
        let mut length = 0;
        for index in 0..digits {
            let digit = self.rest.get(2 + index).ok_or("asn1: syntax error: truncated tag or length")?;
            if length >= 1 << 23 {
                return Err("asn1: structure error: length too large");
            }
            length = length << 8 | usize::from(*digit);
            if length == 0 {
                return Err("asn1: structure error: superfluous leading zeros in length");
            }
        }
        if length < 0x80 {
            return Err("asn1: structure error: non-minimal length");
        }
        Ok((tag, 2 + digits, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    fn made(kind: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(kind).unwrap();
        CertificateParams::default().serialize_request(&key).unwrap().der().to_vec()
    }

    #[test]
    fn requests_are_taken_and_spoilt_ones_are_not() {
        for kind in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let der = made(kind);
            assert_eq!(read(&der), Ok(()));
            let mut other = der.clone();
            *other.last_mut().unwrap() ^= 1;
            assert!(read(&other).unwrap_err().ends_with("verification failure"));
            assert_eq!(read(&[&der[..], &[0]].concat()), Err("asn1: syntax error: trailing data".into()));
            assert_eq!(read(&der[..der.len() - 1]), Err("asn1: syntax error: data truncated".into()));
            for end in 0..der.len() {
                assert!(read(&der[..end]).is_err(), "cut at {end}");
            }
        }
        assert_eq!(read(&[]), Err("asn1: syntax error: sequence truncated".into()));
        let number = "asn1: structure error: tags don't match (16 vs {class:0 tag:2 length:1 isCompound:false}) \
            {optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 \
            timeType:0 set:false omitEmpty:false} certificateRequest @2";
        assert_eq!(read(&[2, 1, 0]), Err(number.into()));
        let none = "PEM block type must be CERTIFICATE REQUEST";
        assert_eq!(fault(b"-----BEGIN CERTIFICATE REQUEST-----").as_deref(), Some(none));
    }
}
