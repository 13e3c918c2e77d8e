//! Published bus bandwidths, as points that the model goes through: message size and GB/s, out of place, 8 GPUs a node.
//! Between the points `model` interpolates; where nothing was published, `model` derives by a stated ratio.
//! All figures are other people's, from public runs of nccl-tests: AWS's samples (one node, two nodes) and
//! crazyguitar/aws-gpu-communication-benchmark (four nodes and more, alltoall, all_gather).

/// Size in bytes and busbw in GB/s, rising in size.
pub(super) type Points = &'static [(u64, f64)];

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// p5 by number of nodes.
pub(super) const P5_ALL_REDUCE: &[(u32, Points)] = &[
    (
        1,
        &[
            (64 * KIB, 6.01),
            (MIB, 64.24),
            (2 * MIB, 84.47),
            (4 * MIB, 132.41),
            (8 * MIB, 174.16),
            (16 * MIB, 236.82),
            (32 * MIB, 295.63),
            (64 * MIB, 359.54),
            (128 * MIB, 396.19),
            (256 * MIB, 418.91),
            (512 * MIB, 433.9),
            (GIB, 441.81),
            (2 * GIB, 444.02),
            (4 * GIB, 475.97),
            (8 * GIB, 480.43),
            (16 * GIB, 483.05),
        ],
    ),
    (
        2,
        &[
            (64 * KIB, 0.91),
            (MIB, 15.95),
            (8 * MIB, 76.8),
            (16 * MIB, 105.52),
            (32 * MIB, 147.32),
            (64 * MIB, 209.19),
            (128 * MIB, 289.2),
            (256 * MIB, 342.81),
            (512 * MIB, 393.3),
            (GIB, 436.95),
            (2 * GIB, 443.72),
            (4 * GIB, 465.9),
            (8 * GIB, 479.3),
            (16 * GIB, 487.09),
        ],
    ),
    (
        4,
        &[
            (32 * MIB, 95.38),
            (64 * MIB, 152.41),
            (128 * MIB, 229.48),
            (256 * MIB, 273.34),
            (512 * MIB, 278.41),
            (GIB, 280.3),
            (2 * GIB, 347.57),
            (4 * GIB, 354.45),
            (8 * GIB, 356.99),
        ],
    ),
    (
        8,
        &[
            (32 * MIB, 86.74),
            (64 * MIB, 103.85),
            (128 * MIB, 156.33),
            (256 * MIB, 232.09),
            (512 * MIB, 272.62),
            (GIB, 274.47),
            (2 * GIB, 278.15),
            (4 * GIB, 351.32),
            (8 * GIB, 355.36),
        ],
    ),
    (
        16,
        &[
            (32 * MIB, 74.85),
            (64 * MIB, 92.39),
            (128 * MIB, 129.2),
            (256 * MIB, 148.11),
            (512 * MIB, 223.8),
            (GIB, 269.23),
            (2 * GIB, 270.91),
            (4 * GIB, 306.15),
            (8 * GIB, 356.27),
        ],
    ),
    (
        32,
        &[
            (32 * MIB, 66.34),
            (64 * MIB, 83.6),
            (128 * MIB, 115.78),
            (256 * MIB, 137.99),
            (512 * MIB, 156.83),
            (GIB, 220.08),
            (2 * GIB, 269.47),
            (4 * GIB, 302.81),
            (8 * GIB, 321.1),
        ],
    ),
];

pub(super) const P5_ALL_GATHER: &[(u32, Points)] = &[
    (2, &[(512 * MIB, 275.5), (GIB, 322.0), (2 * GIB, 328.6), (16 * GIB, 338.6)]),
    (4, &[(512 * MIB, 220.6), (GIB, 288.5), (2 * GIB, 330.9)]),
    (8, &[(512 * MIB, 261.3), (GIB, 224.5), (2 * GIB, 293.7)]),
    (16, &[(512 * MIB, 220.0), (GIB, 261.9), (2 * GIB, 265.2)]),
    (32, &[(512 * MIB, 146.4), (GIB, 222.4), (2 * GIB, 262.8)]),
];

pub(super) const P5_ALLTOALL: &[(u32, Points)] = &[
    (
        2,
        &[
            (32 * MIB, 44.79),
            (64 * MIB, 62.16),
            (128 * MIB, 68.79),
            (256 * MIB, 74.26),
            (512 * MIB, 75.82),
            (GIB, 77.73),
            (2 * GIB, 79.25),
        ],
    ),
    (
        4,
        &[
            (32 * MIB, 34.45),
            (64 * MIB, 43.13),
            (128 * MIB, 52.56),
            (256 * MIB, 54.28),
            (512 * MIB, 53.84),
            (GIB, 53.75),
            (2 * GIB, 54.07),
        ],
    ),
    (
        8,
        &[
            (32 * MIB, 28.67),
            (64 * MIB, 34.69),
            (128 * MIB, 36.2),
            (256 * MIB, 44.4),
            (512 * MIB, 46.57),
            (GIB, 48.31),
            (2 * GIB, 49.63),
        ],
    ),
    (
        16,
        &[
            (32 * MIB, 24.63),
            (64 * MIB, 26.08),
            (128 * MIB, 31.45),
            (256 * MIB, 34.77),
            (512 * MIB, 40.07),
            (GIB, 42.36),
            (2 * GIB, 44.23),
        ],
    ),
    (
        32,
        &[
            (32 * MIB, 19.72),
            (64 * MIB, 22.92),
            (128 * MIB, 27.02),
            (256 * MIB, 30.21),
            (512 * MIB, 33.06),
            (GIB, 38.68),
            (2 * GIB, 40.78),
        ],
    ),
];

/// p4de: one node and two are published. Four nodes and more are the published 85 % of the wire (about 340 of 400
/// Gb/s) at large sizes, falling over node counts as p5's do.
pub(super) const P4DE_ALL_REDUCE: &[(u32, Points)] = &[
    (
        1,
        &[
            (64 * KIB, 3.2),
            (MIB, 32.0),
            (8 * MIB, 105.0),
            (16 * MIB, 139.0),
            (64 * MIB, 196.0),
            (128 * MIB, 211.0),
            (256 * MIB, 222.0),
            (512 * MIB, 227.5),
            (GIB, 230.8),
            (4 * GIB, 233.6),
            (16 * GIB, 234.9),
        ],
    ),
    (
        2,
        &[
            (64 * KIB, 0.54),
            (MIB, 6.35),
            (16 * MIB, 26.39),
            (64 * MIB, 47.58),
            (128 * MIB, 64.3),
            (256 * MIB, 69.89),
            (512 * MIB, 74.3),
            (GIB, 76.79),
            (2 * GIB, 78.33),
        ],
    ),
    (
        4,
        &[
            (64 * MIB, 30.0),
            (128 * MIB, 35.6),
            (256 * MIB, 39.2),
            (512 * MIB, 41.0),
            (GIB, 41.9),
            (2 * GIB, 42.5),
        ],
    ),
    (
        8,
        &[
            (64 * MIB, 25.5),
            (128 * MIB, 31.8),
            (256 * MIB, 36.7),
            (512 * MIB, 39.6),
            (GIB, 41.1),
            (2 * GIB, 42.0),
        ],
    ),
    (
        16,
        &[
            (64 * MIB, 21.5),
            (128 * MIB, 28.0),
            (256 * MIB, 33.8),
            (512 * MIB, 37.6),
            (GIB, 39.8),
            (2 * GIB, 41.0),
        ],
    ),
    (
        32,
        &[
            (64 * MIB, 17.5),
            (128 * MIB, 24.2),
            (256 * MIB, 30.3),
            (512 * MIB, 35.0),
            (GIB, 38.0),
            (2 * GIB, 39.6),
        ],
    ),
];
