//! Points of the curves of NIST, as Go's `crypto/ecdsa` takes them.

use num_bigint::BigUint;

/// A curve: y² = x³ - 3x + b modulo p.
struct Curve {
    oid: &'static [u8],
    name: &'static str,
    /// How long a coordinate is.
    length: usize,
    p: &'static str,
    b: &'static str,
}

const CURVES: [Curve; 4] = [
    Curve {
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x21],
        name: "P224",
        length: 28,
        p: "ffffffffffffffffffffffffffffffff000000000000000000000001",
        b: "b4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4",
    },
    Curve {
        oid: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        name: "P256",
        length: 32,
        p: "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
        b: "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b",
    },
    Curve {
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x22],
        name: "P384",
        length: 48,
        p: "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe\
            ffffffff0000000000000000ffffffff",
        b: "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875a\
            c656398d8a2ed19d2a85c8edd3ec2aef",
    },
    Curve {
        oid: &[0x2b, 0x81, 0x04, 0x00, 0x23],
        name: "P521",
        length: 66,
        p: "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
            ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        b: "0051953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e1\
            56193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00",
    },
];

/// What is wrong with a public key on the curve of this identifier.
pub(super) fn fault(oid: &[u8], key: &[u8]) -> Option<String> {
    let Some(curve) = CURVES.iter().find(|curve| curve.oid == oid) else {
        return Some("x509: unsupported elliptic curve".to_owned());
    };
    let Some(point) = key.strip_prefix(&[4]) else {
        return Some("ecdsa: invalid uncompressed public key".to_owned());
    };
    let name = curve.name;
    if point.len() != 2 * curve.length {
        return Some(format!("invalid {name} point encoding"));
    }
    let number = |hex: &str| BigUint::parse_bytes(hex.as_bytes(), 16).expect("the table is hexadecimal");
    let (p, b) = (number(curve.p), number(curve.b));
    let [x, y] = [&point[..curve.length], &point[curve.length..]].map(BigUint::from_bytes_be);
    if x >= p || y >= p {
        return Some(format!("invalid {name}Element encoding"));
    }
    // Three times p keeps the difference from falling below zero.
    let right = &x * &x * &x + &p * 3u8 - &x * 3u8 + b;
    ((&y * &y) % &p != right % &p).then(|| format!("{name} point not on curve"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    #[test]
    fn keys_are_on_their_curves_and_others_are_not() {
        for (at, kind) in [(1, &PKCS_ECDSA_P256_SHA256), (2, &PKCS_ECDSA_P384_SHA384)] {
            let key = KeyPair::generate_for(kind).unwrap();
            let (curve, mut point) = (&CURVES[at], key.public_key_raw().to_vec());
            assert_eq!(fault(curve.oid, &point), None);
            *point.last_mut().unwrap() ^= 1;
            assert_eq!(fault(curve.oid, &point), Some(format!("{} point not on curve", curve.name)));
            assert_eq!(fault(curve.oid, &point[1..]), Some("ecdsa: invalid uncompressed public key".into()));
            point.pop();
            assert_eq!(fault(curve.oid, &point), Some(format!("invalid {} point encoding", curve.name)));
            let mut large = vec![0xff; 1 + 2 * curve.length];
            large[0] = 4;
            assert_eq!(fault(curve.oid, &large), Some(format!("invalid {}Element encoding", curve.name)));
        }
        assert_eq!(fault(&[1], &[]), Some("x509: unsupported elliptic curve".into()));
    }

    #[test]
    fn the_base_points_are_on_the_curves() {
        for (at, x, y) in [
            (
                0,
                "b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21",
                "bd376388b5f723fb4c22dfe6cd4375a05a07476444d5819985007e34",
            ),
            (
                3,
                "00c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dbaa14b5e77efe75928fe1dc127a2ffa8de3348b3c1856a429bf97e7e31c2e5bd66",
                "011839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662c97ee72995ef42640c550b9013fad0761353c7086a272c24088be94769fd16650",
            ),
        ] {
            let bytes = |hex: &str| -> Vec<u8> {
                (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
            };
            let point = [vec![4], bytes(x), bytes(y)].concat();
            assert_eq!(fault(CURVES[at].oid, &point), None, "{}", CURVES[at].name);
        }
    }
}
